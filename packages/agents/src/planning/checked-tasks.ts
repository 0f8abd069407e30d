import {
  type FleetAction,
  FleetEpisode,
  type FleetKnob,
  type FleetTask,
  fleet,
  type GymAction,
  GymEpisode,
  type GymTask,
  type GymWorld,
  inferencegym,
  llmserve,
  type ServeAction,
  ServeEpisode,
  type ServeTask,
} from '@servegym/environments';
import type { CheckedEpisode, CheckedTask, KnobValues, PlayedTask } from '../core/checks/task-check.ts';
import type { WindowedEpisode } from '../core/policy.ts';
import checkedKnobs from './checked-knobs.json' with { type: 'json' };

/** Knobs of an environment as checks turn them: all at an end of their range, and the values that are compared. */
interface CheckedKnobs<Action> {
  readonly least: Action;
  readonly most: Action;
  /** The thirds of a batch are on a logarithmic scale. */
  readonly knobs: readonly KnobValues<Action>[];
}
export const SERVE_CHECKED = checkedKnobs.llmserve as unknown as CheckedKnobs<ServeAction>;
export const GYM_CHECKED = checkedKnobs.inferencegym as unknown as CheckedKnobs<GymAction>;

/** An episode that can be brought back to where it was. */
interface ForkableEpisode<Action> extends WindowedEpisode<Action, object> {
  snapshot(): unknown;
  restore(state: never): void;
}

function checkedEpisode<Action, Episode extends ForkableEpisode<Action>>(
  episode: Episode,
  unaccounted: (episode: Episode) => number,
): CheckedEpisode<Action> {
  return {
    get done() {
      return episode.done;
    },
    get window() {
      return episode.window;
    },
    step: (action) => episode.step(action),
    observation: () => episode.observation(),
    unaccounted: () => unaccounted(episode),
    fork() {
      const state = episode.snapshot();
      return () => {
        episode.restore(state as never);
        return checkedEpisode(episode, unaccounted);
      };
    },
  };
}

/** Plays an episode to its end. Answers the means of figures over the windows from `first` on. */
function meansOf<Action, Figure extends string>(
  episode: { readonly done: boolean; step(action: Action): number },
  actionOf: (window: number) => Action,
  first: number,
  figuresOf: () => Readonly<Record<Figure, number>>,
  onWindow: () => void,
): Record<Figure, number> {
  const sums = {} as Record<Figure, number>;
  let window = 0;
  while (!episode.done) {
    episode.step(actionOf(window));
    onWindow();
    window++;
    if (window <= first) continue;
    for (const [figure, value] of Object.entries(figuresOf()) as [Figure, number][]) {
      sums[figure] = (sums[figure] ?? 0) + value;
    }
  }
  for (const figure of Object.keys(sums) as Figure[]) sums[figure] /= window - first;
  return sums;
}

/** Figures of an episode of `llmserve`. Latencies in ms; means, but for `preemptions` and `outOfMemory`. */
export type ServeFigure = keyof ReturnType<typeof measureServe>;

/** A task of `llmserve` as checks play it. It is graded as the task of this id that the process knows. */
export function checkedServe(task: ServeTask): CheckedTask<ServeAction, ServeFigure> {
  const { id, difficulty, windows, defaultAction } = task;
  const active = llmserve.activeKnobs(task);
  return {
    ...{ environment: 'llmserve', id, difficulty, windows, defaultAction },
    knobs: SERVE_CHECKED.knobs.filter(({ knob }) => active.includes(knob)),
    start: (seed) => checkedEpisode(new ServeEpisode(task, seed), unaccountedServe),
    play: (seed, actionOf) => measureServe(task, seed, actionOf),
    grade: async (seed, actions) => {
      const { score, breakdown } = await llmserve.grade({ reset: { task_id: id, seed }, actions });
      return { score, worth: breakdown.return as number };
    },
    scaled: (factor) => checkedServe(llmserve.scaleArrivals(task, factor)),
  };
}

function unaccountedServe({ requests, window, totals, cluster }: ServeEpisode): number {
  const onTheirWay = cluster.engines.reduce((sum, engine) => sum + engine.futureCount, 0);
  const inside = cluster.waitingCount + cluster.runningCount + onTheirWay;
  return requests.windowStarts[window] - totals.requestsServed - totals.requestsRejected - inside;
}

/** Windows before this share of the episode are not looked at: a configuration that differs from the default settles in. */
const SETTLED = 0.2;

function measureServe(task: ServeTask, seed: number, actionOf: (window: number) => ServeAction) {
  const episode = new ServeEpisode(task, seed);
  let outOfMemory = 0;
  const means = meansOf(
    episode,
    actionOf,
    Math.floor(SETTLED * task.windows),
    () => {
      const seen = episode.observation();
      return {
        queueDepth: seen.queue_depth,
        activeRequests: seen.active_requests,
        ttftMs: seen.p99_ttft_ms,
        p50ItlMs: seen.p50_itl_ms,
        kvOccupancy: seen.kv_cache_occupancy,
        throughputTps: seen.throughput_tps,
        sloCompliance: seen.slo_compliance_rate,
        gpuMemoryGb: seen.gpu_memory_used_gb,
        costPer1k: seen.estimated_cost_per_1k,
        interactiveTtftMs: episode.metrics.classes[0].ttft.percentile(99),
      };
    },
    () => {
      for (const { kind } of episode.cluster.events) if (kind === 'oom') outOfMemory++;
    },
  );
  const { preemptions } = episode.totals;
  return { ...means, violationRate: 1 - means.sloCompliance, preemptions, outOfMemory };
}

/** A task of `fleet` as checks play it. */
export function checkedFleet(task: FleetTask): PlayedTask<FleetAction> {
  const { id, difficulty, windows, defaultAction } = task;
  const idle = fleet.idleKnobs(task);
  // Each value of a learner by itself, of the knobs that decide something.
  const knobs = (Object.keys(fleet.bins) as FleetKnob[])
    .filter((knob) => !idle.includes(knob))
    .map((knob) => {
      const values: readonly number[] = fleet.bins[knob];
      return { knob, bins: values.map((value) => ({ name: `${value}`, values: [value] })) };
    });
  return {
    ...{ environment: 'fleet', id, difficulty, windows, defaultAction, knobs },
    start: (seed) =>
      checkedEpisode(new FleetEpisode(task, seed), ({ totals, inFlight }) => {
        const { requests, completed, refused } = totals;
        return requests - completed - refused - inFlight.reduce((sum, count) => sum + count, 0);
      }),
  };
}

/**
 * Figures of an episode of `inferencegym`: means over the steps, but for `cost` (US cents), `preempted` (for each request
 * served) and `outOfMemory`.
 */
export type GymFigure = keyof ReturnType<typeof measureGym>;

/** A task of `inferencegym` on a table as checks play it. A step is a window. */
export function checkedGym(world: GymWorld, task: GymTask): CheckedTask<GymAction, GymFigure> {
  const { id, difficulty, activeKnobs, arrivalRate, bursts } = task;
  return {
    ...{ environment: 'inferencegym', id, difficulty, windows: inferencegym.episodeSteps },
    defaultAction: inferencegym.defaultAction,
    knobs: GYM_CHECKED.knobs.filter(({ knob }) => activeKnobs.includes(knob)),
    start: (seed) => replayedGym(world, task, seed),
    play: (seed, actionOf) => measureGym(new GymEpisode(task, seed, world), actionOf),
    grade: async (seed, actions) => {
      const record = { reset: { task_id: id, seed }, actions };
      const { score } = await inferencegym.grade(record, { table: { world } });
      return { score, worth: score };
    },
    scaled: (factor) =>
      checkedGym(world, {
        ...task,
        arrivalRate: arrivalRate * factor,
        bursts: bursts && { ...bursts, rate: bursts.rate * factor },
      }),
  };
}

/** An episode that is brought back by playing its past again. */
function replayedGym(
  world: GymWorld,
  task: GymTask,
  seed: number,
  past: readonly GymAction[] = [],
): CheckedEpisode<GymAction> {
  const episode = new GymEpisode(task, seed, world);
  for (const action of past) episode.step(action);
  const played = [...past];
  return {
    get done() {
      return episode.done;
    },
    get window() {
      return episode.timestep;
    },
    step(action) {
      played.push(action);
      return episode.step(action);
    },
    observation: () => episode.observation(),
    unaccounted() {
      const { arrived, served, failed, rejected } = episode.totals;
      return arrived - served - failed - rejected - episode.queueDepth;
    },
    fork() {
      const until = [...played];
      return () => replayedGym(world, task, seed, until);
    },
  };
}

function measureGym(episode: GymEpisode, actionOf: (step: number) => GymAction) {
  let preemptions = 0;
  const means = meansOf(
    episode,
    actionOf,
    0,
    () => {
      const seen = episode.observation();
      return {
        queueDepth: seen.queue_depth,
        tpotMs: seen.tpot_p50,
        kvOccupancy: seen.kv_cache_occupancy,
        memoryGb: seen.gpu_memory_used_gb,
      };
    },
    () => {
      preemptions += episode.metrics.eviction_events;
    },
  );
  const { totals, timestep: steps } = episode;
  return {
    ...means,
    ttftMs: totals.ttftMs / steps,
    violationRate: totals.violationRate / steps,
    tokensPerSecond: totals.outputTokens / steps,
    cost: totals.cost,
    preempted: totals.served === 0 ? 0 : preemptions / totals.served,
    outOfMemory: totals.oomEvents,
  };
}
