import { amount, count, latencyText, percent } from '../components/format.ts';
import { calm, failing, type Narration, strained } from '../llm-server/narration.ts';
import { type Frame, observed } from '../state/frame.ts';
import type { FleetReport } from './fleet-report.ts';

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
