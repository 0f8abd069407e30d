import { createHash } from 'node:crypto';
import {
  type FleetObservation,
  type FleetWindowReport,
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
import type { StepResult } from '@servegym/openenv/definition';
import type { PlayableEnvironment } from './playable-environment.ts';

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

/** Sums over the windows of an episode. */
interface ServiceTotals {
  compliant: number;
  tokens: number;
  usd: number;
  preemptions: number;
}

/** Adds what a window says of the service. */
export type ServiceReader<Observation> = (
  totals: ServiceTotals,
  window: Pick<StepResult<Observation>, 'observation' | 'metadata'>,
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
): ReturnType<NonNullable<PlayableEnvironment<unknown, Observation>['meter']>> {
  const totals = { compliant: 0, tokens: 0, usd: 0, preemptions: 0 };
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
