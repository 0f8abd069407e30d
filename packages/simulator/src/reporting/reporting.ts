import type { SimulationRun } from '../simulation/simulation-run.ts';
import type { Trace } from '../traces/trace.ts';

/** Columns of a request export, in order. */
export const REQUEST_COLUMNS = [
  'request',
  'arrival_ms',
  'input_tokens',
  'output_tokens',
  'priority',
  'queue_ms',
  'ttft_ms',
  'tpot_ms',
  'e2e_ms',
] as const;

/** One completed request. `tpot_ms` is `null` for a request of one token. */
export type RequestRow = Readonly<Record<(typeof REQUEST_COLUMNS)[number], number | null>>;

/** The completed requests of a run, in order of completion. `priorities`: their classes, if they have any. */
export function* requestRows(
  trace: Trace,
  run: SimulationRun,
  priorities?: Uint8Array,
): Generator<RequestRow, void, void> {
  for (let i = 0; i < run.ids.length; i++) {
    const id = run.ids[i];
    yield {
      request: id,
      arrival_ms: run.arrivalMs?.[i] ?? trace.arrivalMs[id],
      input_tokens: trace.inputTokens[id],
      output_tokens: trace.outputTokens[id],
      priority: priorities === undefined ? 0 : priorities[id],
      queue_ms: run.queueMs[i],
      ttft_ms: run.ttftMs[i],
      tpot_ms: Number.isNaN(run.tpotMs[i]) ? null : run.tpotMs[i],
      e2e_ms: run.e2eMs[i],
    };
  }
}
