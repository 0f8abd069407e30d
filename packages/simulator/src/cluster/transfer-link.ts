import type { Engine } from '../engine/engine.ts';
import type { RequestProgress } from '../engine/engine-log.ts';
import { TICKS_PER_MS, TICKS_PER_S } from '../engine/ticks.ts';
import type { EngineProfile } from '../profiles/engine-profile.ts';

/** KV on its way to an engine that decodes. */
export interface Handover {
  readonly request: RequestProgress;
  /** Tick at which it is there. */
  readonly ready: number;
}

/** The link over which a prefill GPU sends KV to a decode GPU: one transfer after another, at a fixed bandwidth. */
export class TransferLink {
  /** Tick from which the link is idle. */
  idleFrom = 0;
  private readonly ticksPerToken: number;
  private readonly setupTicks: number;

  constructor(profile: EngineProfile) {
    const bytesPerSecond = profile.transfer.gigabytesPerSecond * 1e9;
    this.ticksPerToken = (profile.model.kvBytesPerToken / bytesPerSecond) * TICKS_PER_S;
    this.setupTicks = Math.round(profile.transfer.setupMs * TICKS_PER_MS);
  }

  /** Sends what an engine has prefilled. */
  sendFrom(engine: Engine): Handover[] {
    return engine.takeHandovers().map((request) => {
      return { request, ready: this.send(request.input + request.emitted - 1, request.lastToken) };
    });
  }

  /** Sends the KV of `tokens` tokens as soon as the link is free after `from`. Answers the tick at which it is there. */
  send(tokens: number, from: number): number {
    this.idleFrom = Math.max(this.idleFrom, from) + Math.round(tokens * this.ticksPerToken);
    return this.idleFrom + this.setupTicks;
  }
}
