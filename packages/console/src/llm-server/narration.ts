import { amount, count, latencyText, percent, signed } from '../components/format.ts';
import { type Frame, observed } from '../state/frame.ts';

export type Severity = 'calm' | 'strained' | 'failing';

/** One sentence on what the server is fighting with in a window. */
export interface Narration {
  readonly severity: Severity;
  /** Two or three words. */
  readonly headline: string;
  readonly detail: string;
}

const said = (severity: Severity) => (headline: string, detail: string) => ({ severity, headline, detail });
export const calm = said('calm');
export const strained = said('strained');
export const failing = said('failing');

const FULL = 0.95;
const HEALTHY = 0.9;

/** Says what holds the server back most in `frame`, given the window before. `undefined` when the server tells too little. */
export function narrate(frame: Frame, previous: Frame | undefined): Narration | undefined {
  if (frame.index === 0) {
    return calm(
      'Ready.',
      `Press play${observed(frame, 'queue_depth') === undefined ? '' : ' and watch the server work'}, or turn the knobs yourself.`,
    );
  }
  if (frame.done) {
    const windows = `${count(frame.index)} windows`;
    return calm('Episode over.', `The rewards of ${windows} add up to ${signed(frame.totalReward)}.`);
  }
  const waiting = observed(frame, 'queue_depth');
  // A server that does not tell how many run gets no sentence on its batch.
  const running = observed(frame, 'active_requests') ?? 0;
  if (waiting === undefined) return undefined;
  return (
    interruption(frame) ??
    congestion(frame, previous, waiting, running) ??
    slowness(frame) ??
    calm(
      'Keeping up.',
      `${served(frame)}${waiting === 0 ? 'No request waits.' : `${requests(waiting)} about to start.`}`,
    )
  );
}

function interruption(frame: Frame): Narration | undefined {
  const { events, gpus } = frame.telemetry;
  if (events.some(({ kind }) => kind === 'oom')) {
    return failing('Out of memory.', 'The engine crashed and restarts; all that ran is computed again.');
  }
  const reloading = gpus.filter((gpu) => gpu.reloading).length;
  if (reloading > 0 || events.some(({ kind }) => kind === 'reload')) {
    return strained(
      'Reloading weights.',
      `${reloading === 1 && gpus.length > 1 ? 'One GPU answers' : 'The GPUs answer'} no request until the new precision is loaded.`,
    );
  }
  if (events.some(({ kind }) => kind === 'drain_started')) {
    return strained('Draining.', 'The GPUs change roles and first finish what runs.');
  }
  return undefined;
}

function congestion(
  frame: Frame,
  previous: Frame | undefined,
  waiting: number,
  running: number,
): Narration | undefined {
  const evictions = observed(frame, 'eviction_events') ?? 0;
  const occupancy = observed(frame, 'kv_cache_occupancy') ?? 0;
  if (evictions > 0) {
    return failing(
      'KV memory is full.',
      `${requests(evictions)} preempted: removed from the batch and computed again later.`,
    );
  }
  if (waiting <= Math.max(4, running / 8)) return undefined;
  const trend = waiting - (previous ? (observed(previous, 'queue_depth') ?? waiting) : waiting);
  const tell = trend >= 0 ? failing : strained;
  const queue =
    trend > 0
      ? `${requests(waiting)} waiting, ${count(trend)} more than before.`
      : `${requests(waiting)} waiting.`;
  const cap = frame.action?.batch_cap;
  const { gpus } = frame.telemetry;
  const batches = gpus.length === 0 ? [running] : gpus.map((gpu) => gpu.running);
  if (occupancy > FULL)
    return tell('No KV memory left.', running > 0 ? `${count(running)} requests fill it; ${queue}` : queue);
  if (typeof cap === 'number' && batches.some((batch) => batch >= cap * FULL)) {
    const batch = `${count(running)} requests run, at most ${count(cap)} on a GPU`;
    return tell('The batch is full.', `${batch}; ${queue}`);
  }
  if (trend < 0)
    return tell('Catching up.', `${requests(waiting)} waiting, ${count(-trend)} fewer than before.`);
  return tell('Falling behind.', `Prompts arrive faster than the GPUs read them; ${queue}`);
}

function slowness(frame: Frame): Narration | undefined {
  const strictest = frame.telemetry.slo[0];
  const ttft = observed(frame, 'p99_ttft_ms') ?? 0;
  const itl = observed(frame, 'p50_itl_ms') ?? 0;
  const compliance = observed(frame, 'slo_compliance_rate') ?? 1;
  if (strictest?.tpotMs !== undefined && itl > strictest.tpotMs) {
    return strained(
      'Slow writing.',
      `${latencyText(itl)} between tokens where ${strictest.name} requests allow ${latencyText(strictest.tpotMs)}.`,
    );
  }
  if (compliance >= HEALTHY) return undefined;
  const late = `Only ${percent(compliance)} of the requests are inside their limits`;
  return strictest?.ttftMs !== undefined && ttft > strictest.ttftMs
    ? strained('Late starts.', `${late}; the slowest starts took ${latencyText(ttft)}.`)
    : strained('Late answers.', `${late}.`);
}

function served(frame: Frame): string {
  const compliance = observed(frame, 'slo_compliance_rate');
  const arrivals = observed(frame, 'request_arrival_rate');
  const rate = arrivals === undefined ? '' : ` at ${amount(arrivals)} requests a second`;
  return compliance === undefined ? '' : `${percent(compliance)} of the requests are in time${rate}. `;
}

function requests(n: number): string {
  return n === 1 ? '1 request is' : `${count(n)} requests are`;
}
