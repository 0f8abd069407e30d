import { addServeTrace, findServeTrace, type RegisteredEnvironment } from '@servegym/environments';
import type { JobContext, JobEngine } from '@servegym/jobs';
import { decodeTrace, encodeTrace } from '@servegym/simulator';
import { decodeGymTable, type OwnTable, type PlayInputs } from './playable.ts';

/** Inputs of the caller's own that a job needs: a task, a trace and a table, by the names of their shared bytes. */
export interface SharedInputs {
  readonly task?: string;
  readonly trace?: string;
  readonly table?: string;
}

type Tasks = Pick<RegisteredEnvironment, 'tasks'>;

/** Shares what is the caller's own of a task and its inputs. What comes with ServeGym needs no sharing. */
export async function shareInputs(
  jobs: JobEngine,
  { tasks }: Tasks,
  { taskId, scenario, table }: PlayInputs & { readonly taskId?: string | number },
): Promise<SharedInputs> {
  const task = taskId !== undefined && tasks.isOwn(taskId) ? tasks.find(taskId) : undefined;
  const trace = scenario?.trace;
  return {
    ...(task && { task: await jobs.share(Buffer.from(JSON.stringify(task))) }),
    ...(typeof trace === 'string' && {
      trace: await jobs.share(encodeTrace(findServeTrace(traceName(trace))!)),
    }),
    ...(table && { table: await jobs.share(table.bytes) }),
  };
}

const knownTraces = new Set<string>();
const knownTables = new Map<string, Promise<OwnTable>>();

/** Makes the inputs known to a job: a task takes the place of another's of the same id. */
export async function takeInputs(
  { tasks }: Tasks,
  { task, trace, table }: SharedInputs,
  scenario: Readonly<Record<string, unknown>>,
  context: JobContext,
): Promise<PlayInputs> {
  if (task !== undefined) {
    const json = JSON.parse(Buffer.from(context.shared(task)).toString());
    tasks.add(tasks.parse(json, 'What the job was given'));
  }
  if (trace !== undefined && typeof scenario.trace === 'string' && !knownTraces.has(trace)) {
    addServeTrace(traceName(scenario.trace), decodeTrace(context.shared(trace)));
    knownTraces.add(trace);
  }
  if (table === undefined) return { scenario };
  const known = knownTables.get(table) ?? decodeGymTable(context.shared(table));
  knownTables.set(table, known);
  return { scenario, table: await known };
}

/** A scenario pins its trace by a digest behind the name. */
function traceName(pinned: string): string {
  return pinned.replace(/@.*$/, '');
}
