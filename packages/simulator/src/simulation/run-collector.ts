import type { Engine } from '../engine/engine.ts';
import { msFromTicks } from '../engine/ticks.ts';
import type { SimulationRun } from './simulation-run.ts';
import type { CompletionCollector } from './trace-server.ts';

/** Gathers completions chunk by chunk, so that the engine's logs stay small. */
export class RunCollector implements CompletionCollector {
  private lastTokenMs = 0;
  private count = 0;
  private readonly ids: Int32Array;
  private readonly queueMs: Float64Array;
  private readonly ttftMs: Float64Array;
  private readonly tpotMs: Float64Array;
  private readonly e2eMs: Float64Array;
  private readonly arrivalMs: Float64Array | undefined;

  /** @param keepsArrivals Whether arrivals are others than the trace's. */
  constructor(capacity: number, keepsArrivals: boolean) {
    if (keepsArrivals) this.arrivalMs = new Float64Array(capacity);
    this.ids = new Int32Array(capacity);
    this.queueMs = new Float64Array(capacity);
    this.ttftMs = new Float64Array(capacity);
    this.tpotMs = new Float64Array(capacity);
    this.e2eMs = new Float64Array(capacity);
  }

  take(engine: Engine, origin: number): void {
    const { count, ids, arrivals, scheduled, firstTokens, lastTokens, outputs } = engine.completions;
    // The processes of a front end answer in no order.
    let latest = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < count; i++) {
      const at = this.count++;
      this.ids[at] = ids[i];
      if (this.arrivalMs !== undefined) this.arrivalMs[at] = msFromTicks(arrivals[i] + origin);
      this.queueMs[at] = msFromTicks(scheduled[i] - arrivals[i]);
      this.ttftMs[at] = msFromTicks(firstTokens[i] - arrivals[i]);
      this.tpotMs[at] = msFromTicks(lastTokens[i] - firstTokens[i]) / (outputs[i] - 1);
      this.e2eMs[at] = msFromTicks(lastTokens[i] - arrivals[i]);
      if (lastTokens[i] > latest) latest = lastTokens[i];
    }
    this.lastTokenMs = Math.max(this.lastTokenMs, msFromTicks(latest + origin));
    engine.completions.clear();
    engine.firstTokens.clear();
  }

  /** All that was taken. */
  run(): Pick<
    SimulationRun,
    'simulatedMs' | 'ids' | 'queueMs' | 'ttftMs' | 'tpotMs' | 'e2eMs' | 'arrivalMs'
  > {
    const end = this.count;
    return {
      simulatedMs: this.lastTokenMs,
      ids: this.ids.subarray(0, end),
      queueMs: this.queueMs.subarray(0, end),
      ttftMs: this.ttftMs.subarray(0, end),
      tpotMs: this.tpotMs.subarray(0, end),
      e2eMs: this.e2eMs.subarray(0, end),
      ...(this.arrivalMs && { arrivalMs: this.arrivalMs.subarray(0, end) }),
    };
  }
}
