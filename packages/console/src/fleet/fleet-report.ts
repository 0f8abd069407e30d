import { amountOf, type Fields, fields, list, number, record, text } from '../api/wire.ts';
import { amount, count, latencyText, percent } from '../components/format.ts';
import { calm, failing, type Narration, strained } from '../llm-server/narration.ts';
import { type Frame, observed } from '../state/frame.ts';

/** Metadata of a window of `fleet`. */
export type FleetReport = ReturnType<typeof readReport>;
export type FleetClassReport = ReturnType<typeof classReport>;
export type ReplicaReport = ReturnType<typeof replicaReport>;

const reports = new WeakMap<Fields, FleetReport>();

/** Reads the metadata of a window without trusting its shape. `undefined` where it is not that of a fleet. */
export function fleetReport(metadata: Fields): FleetReport | undefined {
  if (!Array.isArray(metadata.replicas)) return undefined;
  const known = reports.get(metadata);
  if (known) return known;
  const report = readReport(metadata);
  reports.set(metadata, report);
  return report;
}

/** Share of the answered and refused requests that met their objectives; `undefined` without any. */
export function attainmentOf({ classes }: FleetReport): number | undefined {
  const judged = classes.reduce((sum, { completed, refused }) => sum + completed + refused, 0);
  return judged === 0 ? undefined : classes.reduce((sum, { attained }) => sum + attained, 0) / judged;
}

function readReport(metadata: Fields) {
  const objectives = fields(metadata.objectives);
  const failures = list(metadata.events).filter(({ kind }) => kind === 'failed');
  const failed = new Set(failures.map(({ replica }) => replica));
  return {
    classes: list(metadata.classes).map((entry) => classReport(entry, objectives)),
    replicas: list(metadata.replicas).map((entry) => replicaReport(entry, failed)),
  };
}

const classCounts = record({
  name: (value) => text(value) ?? 'requests',
  inFlight: amountOf,
  refused: amountOf,
  completed: amountOf,
  attained: amountOf,
  ttftP99Ms: number,
});

function classReport(entry: Fields, objectives: Fields) {
  const counts = classCounts(entry);
  const limits = fields(objectives[counts.name]);
  /** Limits of the class, ms. */
  return { ...counts, ttftMs: number(limits.ttftMs), tpotMs: number(limits.tpotMs) };
}

const replicaState = record({
  id: amountOf,
  /** The page knows `starting`, `ready` and `draining`. */
  state: (value) => text(value) ?? 'ready',
  role: (value) => text(value) ?? 'mixed',
  /** Seconds until it serves. */
  readyInS: amountOf,
  /** Requests that the router sent to it in the window; absent where the server does not tell. */
  routed: number,
  running: amountOf,
  waiting: amountOf,
  /** Share of the admitted prompt tokens that its cache had, 0..1. */
  prefixCacheHitRate: number,
  kvBlocksUsed: amountOf,
  kvBlocksTotal: amountOf,
});

function replicaReport(entry: Fields, failed: ReadonlySet<unknown>) {
  const state = replicaState(entry);
  return {
    ...state,
    /** It failed in the window. */
    hasFailed: failed.has(entry.id),
    /** 0..1 */
    kvUse: state.kvBlocksTotal > 0 ? state.kvBlocksUsed / state.kvBlocksTotal : 0,
  };
}

export const CAPACITY_DEFINITION =
  'Requests a second that the ready replicas can answer with full batches, an estimate';
export const WASTED_DEFINITION =
  'Part of the bill for replicas that start or drain, and for estimated capacity beyond the demand';

/** Requests a second of all classes that arrived. */
function demandOf({ observation, metadata }: Frame): number {
  const classes = fleetReport(metadata)?.classes ?? [];
  return classes.reduce((sum, { name }) => sum + arrivalsOf(observation, name), 0);
}

/** Requests a second of a class that arrived. */
export function arrivalsOf(observation: Fields, className: string): number {
  return number(fields(observation[className]).arrivals_per_second) ?? 0;
}

/** Mean request of a window, tokens. */
interface MeanRequest {
  readonly prompt: number;
  /** Part of the prompt that no cache has. */
  readonly computed: number;
  readonly answer: number;
}

/**
 * Requests a second that the ready replicas can answer at most: an estimate from the law of an iteration with a full
 * batch of the window's mean request, each replica as if it did prefill and decode. `undefined` where the server does not
 * say how fast a replica is; `null` before the first window, and in one without requests.
 */
export function capacityOf(frame: Frame): number | null | undefined {
  const server = fields(frame.observation.server);
  const ready = observed(frame, 'replicas_ready');
  if (ready === undefined || number(server.step_base_ms) === undefined) return undefined;
  const seqs = number(frame.action?.max_num_active_seqs);
  const budget = number(frame.action?.max_num_batched_tokens);
  const demand = demandOf(frame);
  const answer = observed(frame, 'request_generation_tokens_mean') ?? 0;
  if (seqs === undefined || budget === undefined || demand === 0 || answer === 0) return null;
  const prompt = (observed(frame, 'arrived_prompt_tokens_per_second') ?? 0) / demand;
  const computed = prompt * (1 - (observed(frame, 'prefix_cache_hit_rate') ?? 0));
  const request = { prompt, computed, answer };
  const second = observed(frame, 'second_replicas_ready') ?? 0;
  return (
    (ready - second) * replicaCapacity(server, request, seqs, budget) +
    second * replicaCapacity(fields(server.second), request, seqs, budget)
  );
}

/** Requests a second of one replica with a full batch. */
function replicaCapacity(
  server: Fields,
  { prompt, computed, answer }: MeanRequest,
  seqs: number,
  budget: number,
): number {
  const of = (name: string) => number(server[name]) ?? 0;
  // An iteration has a token of each sequence and the prompts of those that take the places of the ones that end.
  const withinBudget = budget / (1 + computed / answer);
  const batch = Math.min(seqs, of('kv_cache_tokens') / (prompt + answer), withinBudget);
  const sequenceMs = of('step_sequence_us') / 1e3 + (of('step_context_ns') / 1e6) * (prompt + answer / 2);
  const iterationMs = of('step_base_ms') + batch * sequenceMs;
  const batchMs = answer * iterationMs + (batch * computed * of('step_token_us')) / 1e3;
  return batchMs === 0 ? 0 : (1000 * batch) / batchMs;
}

/** Part of the bill for replicas that start or drain, and for estimated capacity beyond the demand, USD an hour. */
export function wastedUsdPerHour(frame: Frame, { replicas }: FleetReport): number | undefined {
  const bill = observed(frame, 'usd_per_hour');
  if (bill === undefined || replicas.length === 0) return bill;
  const ready = replicas.filter(({ state }) => state === 'ready').length / replicas.length;
  const demand = demandOf(frame);
  // Where the capacity is not known the ready replicas count as used.
  const used = demand === 0 ? 0 : Math.min(1, demand / (capacityOf(frame) ?? demand));
  return bill * (1 - ready * used);
}

/** Seconds of queue from which on the fleet is behind. */
const LONG_QUEUE_SECONDS = 2;
const HEALTHY = 0.95;
/** Mean requests in flight on a ready replica below which the sentence says that fewer would do, a choice. */
const FEW_IN_FLIGHT = 8;

/** One sentence on the fleet in a window. `undefined` at the start and at the end of an episode. */
export function narrateFleet(frame: Frame, report: FleetReport): Narration | undefined {
  if (frame.index === 0 || frame.done) return undefined;
  const { events } = frame.telemetry;
  const starting = report.replicas.filter(({ state }) => state === 'starting');
  const ready = report.replicas.filter(({ state }) => state === 'ready');
  const waiting = observed(frame, 'num_requests_waiting') ?? 0;
  const queueSeconds = observed(frame, 'queue_seconds') ?? 0;
  if (events.some(({ kind }) => kind === 'failed')) {
    return failing(
      'A replica failed.',
      'Its requests are sent to others and computed again; it starts cold.',
    );
  }
  if (ready.length === 0) {
    return failing('No replica serves.', `${people(waiting)}. ${soon(starting)}`);
  }
  if (queueSeconds > LONG_QUEUE_SECONDS) {
    return starting.length > 0
      ? strained('Waiting for replicas.', `${people(waiting)}. ${soon(starting)}`)
      : failing(
          'Too few replicas.',
          `${people(waiting)}, about ${latencyText(1000 * queueSeconds)} of work, and none starts.`,
        );
  }
  const refused = report.classes.reduce((sum, each) => sum + each.refused, 0);
  if (refused > 0) {
    return strained('Refusing work.', `${count(refused)} requests of lower classes were answered with 429.`);
  }
  for (const { name, completed, attained } of report.classes) {
    if (completed > 0 && attained < HEALTHY * completed) {
      return strained(
        'Late answers.',
        `${percent(attained / completed)} of the ${name.replace('_', ' ')} requests met their objectives.`,
      );
    }
  }
  const inFlight = ready.reduce((sum, replica) => sum + replica.running + replica.waiting, 0) / ready.length;
  if (inFlight < FEW_IN_FLIGHT && ready.length > 1) {
    return calm(
      'Capacity to spare.',
      `A replica has ${amount(inFlight)} requests in flight; every replica is billed.`,
    );
  }
  return calm('Keeping up.', 'Requests start at once and meet their objectives.');
}

function people(waiting: number): string {
  return waiting === 1 ? '1 request waits' : `${count(waiting)} requests wait`;
}

function soon(starting: readonly { readonly readyInS: number }[]): string {
  if (starting.length === 0) return 'None starts.';
  const first = Math.min(...starting.map(({ readyInS }) => readyInS));
  const verb = starting.length === 1 ? 'replica starts, ready' : 'replicas start, the first ready';
  return `${count(starting.length)} ${verb} in ${count(Math.ceil(first))}\u202fs.`;
}
