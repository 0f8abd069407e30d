import { portableMath } from '../portable-math.ts';
import { randomUniform, streamKey } from '../random/counter-random.ts';
import type { EngineSettings } from './engine-config.ts';
import { ticksFromMs } from './ticks.ts';

type OverheadSettings = Pick<
  EngineSettings,
  'requestOverheadMs' | 'requestOverheadJitter' | 'requestOverheadPerTokenUs' | 'seed'
>;

/**
 * The time between a request's arrival and the scheduler: a constant part, a part that is exponentially distributed, as of
 * work that waits its turn in the event loop of an API server, and one that grows with the prompt, as tokenization does. A
 * draw belongs to a request.
 */
export class RequestOverhead {
  declare private readonly constantMs: number;
  declare private readonly varyingMs: number;
  declare private readonly perTokenMs: number;
  declare private readonly key: number;

  constructor(settings: OverheadSettings) {
    const { requestOverheadMs: meanMs, requestOverheadJitter: jitter, seed } = settings;
    this.perTokenMs = settings.requestOverheadPerTokenUs / 1000;
    this.constantMs = meanMs * (1 - jitter);
    this.varyingMs = meanMs * jitter;
    this.key = streamKey(seed, 'request overhead');
  }

  /** Overhead of a request with a prompt of so many tokens, ticks. */
  ticks(id: number, input: number): number {
    const constantMs = this.constantMs + this.perTokenMs * input;
    if (this.varyingMs === 0) return ticksFromMs(constantMs);
    const exponential = -portableMath.log(1 - randomUniform(this.key, id, 0));
    return ticksFromMs(constantMs + this.varyingMs * exponential);
  }
}
