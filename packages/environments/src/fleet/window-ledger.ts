import { type CompletionLog, type FirstTokenLog, LatencyHistogram, TICKS_PER_MS } from '@servegym/simulator';
import { REQUEST_CLASSES } from '../tasks.ts';
import type { FleetRequests } from './fleet-requests.ts';
import type { FleetTask } from './fleet-task.ts';

/** One class over one window. */
export class ClassLedger {
  arrived = 0;
  completed = 0;
  /** Completed inside their objectives. */
  attained = 0;
  refused = 0;
  /** Times to first token. */
  readonly ttft = new LatencyHistogram();

  clear(): void {
    this.arrived = this.completed = this.attained = this.refused = 0;
    this.ttft.clear();
  }
}

/** Arrivals, answers and earnings of one window. One object, reused. */
export class WindowLedger {
  readonly classes: readonly ClassLedger[] = REQUEST_CLASSES.map(() => new ClassLedger());
  readonly ttft = new LatencyHistogram();
  /** Price of the tokens inside their objectives, USD. */
  revenueUsd = 0;
  arrivedPromptTokens = 0;
  /** Output tokens of the requests completed. */
  answeredTokens = 0;
  readonly #requests: FleetRequests;
  readonly #task: FleetTask;
  /** Tick at which each request arrived at the gateway. */
  readonly #arrivalTicks: Float64Array;

  constructor(task: FleetTask, requests: FleetRequests, arrivalTicks: Float64Array) {
    this.#task = task;
    this.#requests = requests;
    this.#arrivalTicks = arrivalTicks;
  }

  get arrived(): number {
    return this.classes.reduce((sum, { arrived }) => sum + arrived, 0);
  }
  get completed(): number {
    return this.classes.reduce((sum, { completed }) => sum + completed, 0);
  }
  get attained(): number {
    return this.classes.reduce((sum, { attained }) => sum + attained, 0);
  }
  get refused(): number {
    return this.classes.reduce((sum, { refused }) => sum + refused, 0);
  }

  clear(): void {
    for (const each of this.classes) each.clear();
    this.ttft.clear();
    this.revenueUsd = this.arrivedPromptTokens = this.answeredTokens = 0;
  }

  firstTokens({ ids, firstTokens, count }: FirstTokenLog): void {
    const { classes } = this.#requests;
    for (let i = 0; i < count; i++) {
      const ticks = firstTokens[i] - this.#arrivalTicks[ids[i]];
      this.ttft.add(ticks, 1);
      this.classes[classes[ids[i]]].ttft.add(ticks, 1);
    }
  }

  completions({ ids, firstTokens, lastTokens, outputs, count }: CompletionLog): void {
    const { classes, inputTokens } = this.#requests;
    const { objectives, prices } = this.#task;
    for (let i = 0; i < count; i++) {
      const id = ids[i];
      const name = REQUEST_CLASSES[classes[id]];
      const ledger = this.classes[classes[id]];
      ledger.completed++;
      this.answeredTokens += outputs[i];
      const arrival = this.#arrivalTicks[id];
      const { ttftMs, tpotMs, e2eMs } = objectives[name];
      const gaps = outputs[i] - 1;
      const inTime =
        (ttftMs === undefined || firstTokens[i] - arrival <= ttftMs * TICKS_PER_MS) &&
        (tpotMs === undefined || lastTokens[i] - firstTokens[i] <= tpotMs * TICKS_PER_MS * gaps) &&
        (e2eMs === undefined || lastTokens[i] - arrival <= e2eMs * TICKS_PER_MS);
      if (!inTime) continue;
      ledger.attained++;
      this.revenueUsd +=
        (inputTokens[id] * prices[name].usdPerMillionInput + outputs[i] * prices[name].usdPerMillionOutput) /
        1e6;
    }
  }
}
