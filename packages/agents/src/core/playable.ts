import { createHash } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import {
  addServeTrace,
  type FleetObservation,
  type FleetWindowReport,
  findServeTrace,
  type GymObservation,
  GymWorld,
  llmserve,
  type RegisteredEnvironment,
  readTableRows,
  type ServeObservation,
  type StepInfo,
  type TableRows,
  TraceTable,
} from '@servegym/environments';
import type { Job, JobContext, JobEngine, Json } from '@servegym/jobs';
import type { EnvironmentDefinition, EpisodeRecord, Grade, StepResult } from '@servegym/openenv/definition';

type Awaitable<Answer> = Answer | Promise<Answer>;

/** Options of the reset that begins an episode; without `task_id` where the environment has no tasks. */
export type EpisodeReset = Readonly<{ task_id?: string | number; seed: number }>;

/** One running environment, which plays one episode at a time. */
export interface EnvironmentInstance<Action, Observation> {
  reset(options: EpisodeReset): Awaitable<StepResult<Observation>>;
  step(action: Action): Awaitable<StepResult<Observation>>;
  close?(): Awaitable<void>;
}

/** What an environment says of itself. */
type Described = 'id' | 'version' | 'name' | 'description' | 'tasks' | 'action' | 'observation';

/**
 * An environment as policies play it and evaluations grade it: a definition with the action that episodes begin with and
 * the figures that reports need.
 */
export interface PlayableEnvironment<Action, Observation>
  extends Pick<EnvironmentDefinition<Action, Observation>, Described> {
  create(): EnvironmentInstance<Action, Observation>;
  /** Grades an episode from its seed and actions. */
  readonly grade?:
    | ((record: EpisodeRecord<Action> & { readonly reset: EpisodeReset }) => Awaitable<Grade>)
    | undefined;
  /** The configuration that `reset` applies in a task. */
  initialAction(taskId: string | number): Action;
  /** Reads the service of an episode off its windows. Evaluations need it. */
  readonly meter?: ((taskId: string | number) => ServiceMeter<Observation>) | undefined;
  /** Options of every reset, for policies that plan on the true traffic. */
  readonly scenario?: Readonly<Record<string, unknown>>;
}

/** Quality and cost of the service over an episode. */
export interface ServiceFigures {
  /** Mean over the windows of the share of requests inside their SLO. */
  readonly sloCompliance: number;
  /** USD for 1,000 output tokens over the whole episode; when there were none, USD for the episode. */
  readonly costPer1k: number;
  readonly preemptions: number;
}

type SeenResult<Observation> = Pick<StepResult<Observation>, 'observation' | 'metadata'>;

/** Reads from the windows of an episode how well clients were served. */
interface ServiceMeter<Observation> {
  see(window: SeenResult<Observation>): void;
  figures(): ServiceFigures;
}

/** A table of one's own instead of the one that comes with `inferencegym`. */
export interface OwnTable {
  /** A Parquet file. */
  readonly bytes: Uint8Array;
  readonly rows: TableRows;
  readonly world: GymWorld;
  /** SHA-256 of the bytes. */
  readonly hash: string;
}

/** The trace table in the bytes of a Parquet file. @throws EnvironmentError when it cannot be played */
export async function decodeGymTable(bytes: Uint8Array): Promise<OwnTable> {
  const rows = await readTableRows(bytes);
  const world = new GymWorld(new TraceTable(rows));
  return { bytes, rows, world, hash: createHash('sha256').update(bytes).digest('hex') };
}

/** Inputs of a play beside task and seed. */
export interface PlayInputs {
  /** Further options of every reset: traffic, a trace, a shift. */
  readonly scenario?: Readonly<Record<string, unknown>> | undefined;
  /** `inferencegym`. */
  readonly table?: OwnTable | undefined;
}

const noService = () => ({ compliant: 0, tokens: 0, usd: 0, preemptions: 0 });

/** Adds what a window says of the service. */
export type ServiceReader<Observation> = (
  totals: ReturnType<typeof noService>,
  window: SeenResult<Observation>,
  taskId: string | number,
) => void;

/** An environment as policies play it: under a scenario, on a table. */
export function playable<Action, Observation extends object>(
  entry: Pick<RegisteredEnvironment<Action, Observation>, 'definition' | 'initialAction'>,
  { scenario = {}, table }: PlayInputs = {},
  read?: ServiceReader<Observation>,
): PlayableEnvironment<Action, Observation> {
  const definition = entry.definition({ table });
  const { grade } = definition;
  return {
    ...definition,
    scenario,
    create() {
      const instance = definition.create();
      return {
        reset: (options) => instance.reset({ ...scenario, ...options }),
        step: (action) => instance.step(action),
        close: () => instance.close?.(),
      };
    },
    grade: grade && (({ reset, actions }) => grade({ reset: { ...scenario, ...reset }, actions })),
    initialAction: (taskId) => entry.initialAction({ task_id: taskId }),
    meter: read && ((taskId) => meter(read, taskId)),
  };
}

function meter<Observation>(
  read: ServiceReader<Observation>,
  taskId: string | number,
): ServiceMeter<Observation> {
  const totals = noService();
  let windows = 0;
  return {
    see(window) {
      windows++;
      read(totals, window, taskId);
    },
    figures: () => ({
      sloCompliance: totals.compliant / windows,
      costPer1k: totals.tokens > 0 ? (totals.usd / totals.tokens) * 1000 : totals.usd,
      preemptions: totals.preemptions,
    }),
  };
}

export const readServeWindow: ServiceReader<ServeObservation> = (totals, { observation }, taskId) => {
  const emitted = observation.throughput_tps * (llmserve.tasks.find(taskId)?.windowSeconds ?? 0);
  totals.compliant += observation.slo_compliance_rate;
  totals.tokens += emitted;
  // A window that emits nothing reports what the window itself costs.
  totals.usd += observation.estimated_cost_per_1k * (emitted > 0 ? emitted / 1000 : 1);
  totals.preemptions += observation.eviction_events;
};

export const readFleetWindow: ServiceReader<FleetObservation> = (totals, { observation, metadata }) => {
  const { slo_cost, reward_components, window_s } = metadata as unknown as FleetWindowReport;
  totals.compliant += 1 - slo_cost;
  totals.tokens += observation.generation_tokens_per_second * window_s;
  totals.usd += reward_components.gpu_usd;
  totals.preemptions += observation.num_preemptions;
};

export const readGymStep: ServiceReader<GymObservation> = (totals, { observation, metadata }) => {
  const { metrics } = metadata as unknown as StepInfo;
  totals.compliant += 1 - observation.slo_violation_rate;
  totals.tokens += metrics.tokens_per_sec;
  totals.usd = observation.cost_so_far / 100;
  totals.preemptions += metrics.eviction_events;
};

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
      trace: await jobs.share(serialize(findServeTrace(traceName(trace))!)),
    }),
    ...(table && { table: await jobs.share(table.bytes) }),
  };
}

/** What the jobs below are given beside their own input. */
export interface JobInputs {
  readonly shared: SharedInputs;
  /** Shared bytes of a file; `null` where there is none. */
  readonly file: string | null;
}

/** A job of this kind for each input, with what is the caller's own of their task, and with a file. */
export async function jobsOn(
  jobs: JobEngine,
  kind: string,
  entry: Tasks,
  own: Parameters<typeof shareInputs>[2],
  inputs: readonly object[],
  file?: Uint8Array,
): Promise<Job[]> {
  const shared = await shareInputs(jobs, entry, own);
  const name = file === undefined ? null : await jobs.share(file);
  const names = [...Object.values(shared), ...(name === null ? [] : [name])];
  return inputs.map((input) => {
    const given: JobInputs = { shared, file: name };
    return { kind, input: { ...input, ...given } as unknown as Json, shared: names };
  });
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
    addServeTrace(traceName(scenario.trace), deserialize(context.shared(trace)));
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
