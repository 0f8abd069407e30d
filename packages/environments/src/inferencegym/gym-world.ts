import { SEED_SPLITS } from '../scenario.ts';
import { type EpisodeWorld, GymEpisode } from './gym-episode.ts';
import { GYM_TASKS, type GymTask, type GymTaskId } from './gym-tasks.ts';
import { EPISODE_STEPS, GYM_DEFAULT_ACTION, type GymAction, type Knob, SPEC_LENGTHS } from './schema.ts';
import { ServiceTimes } from './service.ts';
import shippedCalibration from './shipped-calibration.json' with { type: 'json' };
import { shippedTable, type TraceTable } from './table/trace-table.ts';

/** A trace table with what follows from it. Shared by all episodes on the table. */
export class GymWorld {
  readonly times: ServiceTimes;
  readonly #calibrations: Partial<Calibration>;

  /** @param calibration of the tasks; what is not there is measured when it is first asked for, in up to two seconds */
  constructor(table: TraceTable, calibration: Partial<Calibration> = {}) {
    this.times = new ServiceTimes(table);
    this.#calibrations = { ...calibration };
  }

  /** Reference of a task's scores on this table; measured once, which takes a moment. */
  calibration(task: GymTask): TaskCalibration {
    const { id } = task;
    this.#calibrations[id] ??= calibrateTask(this.times, task);
    return this.#calibrations[id];
  }

  /** Measures all that is not known yet, so that no episode has to wait for it. */
  prepare(): void {
    for (const task of Object.values(GYM_TASKS)) this.calibration(task);
  }
}

let shipped: Promise<GymWorld> | undefined;

/** The world of the table that comes with the package. A test writes its calibration. */
export function shippedWorld(): Promise<GymWorld> {
  shipped ??= shippedTable().then((table) => new GymWorld(table, shippedCalibration as Calibration));
  return shipped;
}

/** Reference of a task's rewards and grades on one table. */
export type TaskCalibration = Readonly<ReturnType<typeof calibrateTask>>;

type Calibration = Record<GymTaskId, TaskCalibration>;

/** Sequences of the server at whose throughput the score of task 1 begins. */
const REFERENCE_BATCH = 8;
/** Training seeds that a configuration is judged on. */
const SEEDS = 2;

/** Values that each knob is tried at. */
const TRIED: { readonly [K in Knob]: readonly GymAction[K][] } = {
  batch_size: [16, 32, 64, 96, 128, 192, 256, 512],
  kv_budget: [0.25, 0.5, 0.75, 0.9],
  spec_length: SPEC_LENGTHS,
  prefill_disagg: [false, true],
  quant_tier: [0, 1, 2],
};

/**
 * Measures a task on a table: the most tokens a second that a configuration which never changes reaches, and what eight
 * sequences reach.
 */
export function calibrateTask(times: ServiceTimes, task: GymTask) {
  // Throughput does not depend on what rewards are measured against.
  const world: EpisodeWorld = { times, calibration: () => ({ bestTokensPerSecond: 1 }) };
  let best = GYM_DEFAULT_ACTION;
  let most = tokensPerSecond(world, task, best);
  for (const action of configurations(task)) {
    const tps = tokensPerSecond(world, task, action);
    if (tps <= most) continue;
    most = tps;
    best = action;
  }
  const reference = { ...GYM_DEFAULT_ACTION, batch_size: REFERENCE_BATCH };
  return {
    /** Most that a configuration that never changes reaches on training traffic, output tokens a second. */
    bestTokensPerSecond: Math.round(most),
    /** Throughput of a server that runs eight sequences at most, output tokens a second: the score of task 1 begins there. */
    referenceTokensPerSecond: Math.round(tokensPerSecond(world, task, reference)),
    /** The configuration that reached the most. */
    best,
  };
}

function configurations(task: GymTask): GymAction[] {
  let actions: GymAction[] = [GYM_DEFAULT_ACTION];
  for (const knob of task.activeKnobs) {
    actions = actions.flatMap((action) => TRIED[knob].map((value) => ({ ...action, [knob]: value })));
  }
  return actions;
}

function tokensPerSecond(world: EpisodeWorld, task: GymTask, action: GymAction): number {
  let tokens = 0;
  for (let i = 0; i < SEEDS; i++) {
    const episode = new GymEpisode(task, SEED_SPLITS.train.first + i, world);
    while (!episode.done) episode.step(action);
    tokens += episode.totals.outputTokens;
  }
  return tokens / SEEDS / EPISODE_STEPS;
}
