import { type Fields, fields, number } from '../api/wire.ts';
import { amount, count, dollars, latencyText, percent } from '../components/format.ts';
import { calm, failing, type Narration, strained } from '../llm-server/narration.ts';
import { type Frame, observed } from '../state/frame.ts';

function sumOf<T>(list: readonly T[], of: (one: T) => number): number {
  return list.reduce((sum, one) => sum + of(one), 0);
}

/** What figures and charts of a fleet show beside its observation. */
export const DEMAND = {
  label: 'Requests',
  definition: 'Requests that arrived, a second',
  format: amount,
  value: demandOf,
};
export const CAPACITY = {
  label: 'Capacity',
  definition: 'Requests a second that the ready replicas can answer with full batches, an estimate',
  format: amount,
  value: capacityOf,
};
export const REFUSED = {
  label: 'Refused',
  definition: 'Requests of the window answered with 429',
  format: count,
  value: ({ telemetry }: Frame) => sumOf(telemetry.classes, ({ refused }) => refused),
};
export const BILLED = {
  label: 'Billed',
  definition: 'Replicas that start, serve or drain',
  format: count,
  value: ({ telemetry }: Frame) => telemetry.replicas?.length,
};
export const NET = {
  label: 'Net',
  definition: 'Price of the tokens inside their objectives, less the bill',
  format: dollars,
  value(frame: Frame) {
    const earned = observed(frame, 'revenue_usd_per_hour');
    const bill = observed(frame, 'usd_per_hour');
    return earned === undefined || bill === undefined ? undefined : earned - bill;
  },
};
export const WASTED = {
  label: 'Wasted',
  definition:
    'Part of the bill for replicas that start or drain, and for estimated capacity beyond the demand',
  format: dollars,
  value: wastedUsdPerHour,
};
export const ATTAINMENT = {
  label: 'In time',
  definition: 'Share of the answered and refused requests that met their objectives',
  format: percent,
  value({ telemetry: { classes } }: Frame) {
    const judged = sumOf(classes, ({ completed, refused }) => completed + refused);
    return judged === 0 ? undefined : sumOf(classes, ({ attained }) => attained) / judged;
  },
};

/** Requests a second of all classes that arrived. */
export function demandOf({ observation, telemetry: { classes } }: Frame): number {
  return sumOf(classes, ({ name }) => arrivalsOf(observation, name));
}

/** Requests a second of a class that arrived. */
export function arrivalsOf(observation: Fields, className: string): number {
  return number(fields(observation[className]).arrivals_per_second) ?? 0;
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

/**
 * Requests a second of one replica with a full batch.
 * @param request the mean one of a window, tokens; `computed` is the part of the prompt that no cache has
 */
function replicaCapacity(
  server: Fields,
  { prompt, computed, answer }: Readonly<Record<'prompt' | 'computed' | 'answer', number>>,
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
export function wastedUsdPerHour(frame: Frame): number | undefined {
  const { replicas = [] } = frame.telemetry;
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

/** One sentence on the fleet in a window. `undefined` where there is none, and at the start and the end of an episode. */
export function narrateFleet(frame: Frame): Narration | undefined {
  const { events, classes, replicas } = frame.telemetry;
  if (replicas === undefined || frame.index === 0 || frame.done) return undefined;
  const starting = replicas.filter(({ state }) => state === 'starting');
  const ready = replicas.filter(({ state }) => state === 'ready');
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
  const refused = REFUSED.value(frame);
  if (refused > 0) {
    return strained('Refusing work.', `${count(refused)} requests of lower classes were answered with 429.`);
  }
  for (const { name, completed, attained } of classes) {
    if (completed > 0 && attained < HEALTHY * completed) {
      return strained(
        'Late answers.',
        `${percent(attained / completed)} of the ${name.replace('_', ' ')} requests met their objectives.`,
      );
    }
  }
  const inFlight = sumOf(ready, ({ running, waiting: queued }) => running + queued) / ready.length;
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
