import { addServeTrace, findServeTrace, type ServeScenario } from '@servegym/environments';
import type { JobContext, JobEngine } from '@servegym/jobs';
import { decodeTrace, encodeTrace } from '@servegym/simulator';

/** Shares the trace of the caller's own that a scenario names; `undefined` where it names none. */
export async function shareTrace(jobs: JobEngine, { trace }: ServeScenario): Promise<string | undefined> {
  return typeof trace === 'string' ? jobs.share(encodeTrace(findServeTrace(traceName(trace))!)) : undefined;
}

const known = new Set<string>();

/** Makes the trace known that a scenario names, in a job that was given its shared bytes. */
export function addSharedTrace(
  { trace }: ServeScenario,
  shared: string | undefined,
  context: JobContext,
): void {
  if (shared === undefined || typeof trace !== 'string' || known.has(shared)) return;
  addServeTrace(traceName(trace), decodeTrace(context.shared(shared)));
  known.add(shared);
}

/** A scenario pins its trace by a digest behind the name. */
function traceName(pinned: string): string {
  return pinned.replace(/@.*$/, '');
}
