import type { SimulatedSpan, SimulationRun } from '../simulation/simulation-run.ts';
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

const REQUESTS_PID = 0;

/**
 * A run in the Trace Event format that Perfetto and chrome://tracing open: the iterations of each replica, its queue,
 * batch and KV blocks as counters, and each request with its wait, prefill and decode. Yields the JSON in pieces.
 * @see https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (the format)
 */
export function* chromeTrace(
  trace: Trace,
  run: SimulationRun,
  spans: Iterable<SimulatedSpan>,
): Generator<string, void, void> {
  yield '{"displayTimeUnit":"ms","traceEvents":[\n';
  yield JSON.stringify(processName(REQUESTS_PID, 'requests'));
  const named = new Set<number>();
  for (const span of spans) {
    const pid = span.replica + 1;
    if (!named.has(pid)) {
      named.add(pid);
      yield `,\n${JSON.stringify(processName(pid, `replica ${span.replica}`))}`;
    }
    for (const event of spanEvents(span, pid)) yield `,\n${JSON.stringify(event)}`;
  }
  for (let i = 0; i < run.ids.length; i++) {
    for (const event of requestEvents(trace, run, i)) yield `,\n${JSON.stringify(event)}`;
  }
  yield '\n]}\n';
}

function processName(pid: number, name: string): object {
  return { ph: 'M', name: 'process_name', pid, args: { name } };
}

function spanEvents(span: SimulatedSpan, pid: number): object[] {
  const ts = span.startMs * 1000;
  const end = (span.startMs + span.durationMs) * 1000;
  const { iterations, prefillTokens, runningBefore, waiting, running, kvBlocksUsed } = span;
  return [
    {
      ph: 'X',
      name: prefillTokens > 0 ? 'prefill and decode' : iterations > 1 ? `${iterations} decodes` : 'decode',
      pid,
      tid: 1,
      ts,
      dur: span.durationMs * 1000,
      args: { iterations, prefill_tokens: prefillTokens, running_before: runningBefore },
    },
    { ph: 'C', name: 'requests', pid, ts: end, args: { waiting, running } },
    { ph: 'C', name: 'KV blocks', pid, ts: end, args: { used: kvBlocksUsed } },
  ];
}

function requestEvents(trace: Trace, run: SimulationRun, i: number): object[] {
  const id = run.ids[i];
  const arrival = (run.arrivalMs?.[i] ?? trace.arrivalMs[id]) * 1000;
  const phases: [name: string, from: number, to: number][] = [
    [`request ${id}`, 0, run.e2eMs[i]],
    ['wait', 0, run.queueMs[i]],
    ['prefill', run.queueMs[i], run.ttftMs[i]],
    ['decode', run.ttftMs[i], run.e2eMs[i]],
  ];
  const args = { input_tokens: trace.inputTokens[id], output_tokens: trace.outputTokens[id] };
  return phases.flatMap(([name, from, to]) => {
    const event = { cat: 'request', name, id, pid: REQUESTS_PID, tid: 1 };
    return [
      { ...event, ph: 'b', ts: arrival + from * 1000, args },
      { ...event, ph: 'e', ts: arrival + to * 1000 },
    ];
  });
}
