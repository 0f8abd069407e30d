import type { Engine } from '../engine/engine.ts';
import { enlarged } from '../engine/slot-buffer.ts';
import { msFromTicks } from '../engine/ticks.ts';
import type { SimulationRun } from './simulation-run.ts';

/** Results of single requests, as columns; of a run that is summarized, the latencies. */
type Columns = Pick<SimulationRun, 'ids' | 'queueMs' | 'ttftMs' | 'tpotMs' | 'e2eMs' | 'arrivalMs'>;

/** Gathers completions chunk by chunk, so that the engine's logs stay small. */
export class RunCollector {
  private lastTokenMs = 0;
  private count = 0;
  private ids = new Int32Array(0);
  private queueMs = new Float64Array(0);
  private arrivalMs = new Float64Array(0);
  private ttftMs: Float64Array;
  private tpotMs: Float64Array;
  private e2eMs: Float64Array;

  /**
   * @param capacity Completions that there is room for at first.
   * @param keeps Columns beside the latencies.
   */
  constructor(capacity: number, keeps: 'latencies' | 'requests' | 'requests and arrivals') {
    this.ttftMs = new Float64Array(capacity);
    this.tpotMs = new Float64Array(capacity);
    this.e2eMs = new Float64Array(capacity);
    if (keeps === 'latencies') return;
    this.ids = new Int32Array(capacity);
    this.queueMs = new Float64Array(capacity);
    if (keeps === 'requests and arrivals') this.arrivalMs = new Float64Array(capacity);
  }

  /** Takes what an engine has completed since it was last asked. @param origin Tick at which its clock began. */
  take(engine: Engine, origin: number): void {
    const { count, ids, arrivals, scheduled, firstTokens, lastTokens, outputs } = engine.completions;
    while (this.count + count > this.ttftMs.length) this.grow();
    const { queueMs, arrivalMs, ttftMs, tpotMs, e2eMs } = this;
    // The processes of a front end answer in no order.
    let latest = Number.NEGATIVE_INFINITY;
    for (let i = 0, at = this.count; i < count; i++, at++) {
      if (this.ids.length > 0) this.ids[at] = ids[i];
      if (queueMs.length > 0) queueMs[at] = msFromTicks(scheduled[i] - arrivals[i]);
      if (arrivalMs.length > 0) arrivalMs[at] = msFromTicks(arrivals[i] + origin);
      ttftMs[at] = msFromTicks(firstTokens[i] - arrivals[i]);
      tpotMs[at] = msFromTicks(lastTokens[i] - firstTokens[i]) / (outputs[i] - 1);
      e2eMs[at] = msFromTicks(lastTokens[i] - arrivals[i]);
      if (lastTokens[i] > latest) latest = lastTokens[i];
    }
    this.count += count;
    this.lastTokenMs = Math.max(this.lastTokenMs, msFromTicks(latest + origin));
    engine.completions.clear();
    engine.firstTokens.clear();
  }

  run(): Columns & Pick<SimulationRun, 'simulatedMs'> {
    const end = this.count;
    return {
      simulatedMs: this.lastTokenMs,
      ids: this.ids.subarray(0, end),
      queueMs: this.queueMs.subarray(0, end),
      ttftMs: this.ttftMs.subarray(0, end),
      tpotMs: this.tpotMs.subarray(0, end),
      e2eMs: this.e2eMs.subarray(0, end),
      ...(this.arrivalMs.length > 0 && { arrivalMs: this.arrivalMs.subarray(0, end) }),
    };
  }

  /** Doubles the room for latencies: only of a run that is summarized is the number of requests not known before. */
  private grow(): void {
    for (const name of ['ttftMs', 'tpotMs', 'e2eMs'] as const)
      this[name] = enlarged(this[name], 2 * this[name].length);
  }
}
