import { amount, count, latencyText, percent } from '../components/format.ts';
import type { Narration } from '../llm-server/narration.ts';
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
    return {
      severity: 'failing',
      headline: 'A replica failed.',
      detail: 'Its requests are sent to others and computed again; it starts cold.',
    };
  }
  if (ready.length === 0) {
    return {
      severity: 'failing',
      headline: 'No replica serves.',
      detail: `${people(waiting)}. ${soon(starting)}`,
    };
  }
  if (queueSeconds > LONG_QUEUE_SECONDS) {
    return starting.length > 0
      ? {
          severity: 'strained',
          headline: 'Waiting for replicas.',
          detail: `${people(waiting)}. ${soon(starting)}`,
        }
      : {
          severity: 'failing',
          headline: 'Too few replicas.',
          detail: `${people(waiting)}, about ${latencyText(1000 * queueSeconds)} of work, and none starts.`,
        };
  }
  const refused = report.classes.reduce((sum, each) => sum + each.refused, 0);
  if (refused > 0) {
    return {
      severity: 'strained',
      headline: 'Refusing work.',
      detail: `${count(refused)} requests of lower classes were answered with 429.`,
    };
  }
  for (const { name, completed, attained } of report.classes) {
    if (completed > 0 && attained < HEALTHY * completed) {
      return {
        severity: 'strained',
        headline: 'Late answers.',
        detail: `${percent(attained / completed)} of the ${name.replace('_', ' ')} requests met their objectives.`,
      };
    }
  }
  const inFlight = ready.reduce((sum, replica) => sum + replica.running + replica.waiting, 0) / ready.length;
  if (inFlight < FEW_IN_FLIGHT && ready.length > 1) {
    return {
      severity: 'calm',
      headline: 'Capacity to spare.',
      detail: `A replica has ${amount(inFlight)} requests in flight; every replica is billed.`,
    };
  }
  return {
    severity: 'calm',
    headline: 'Keeping up.',
    detail: 'Requests start at once and meet their objectives.',
  };
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
