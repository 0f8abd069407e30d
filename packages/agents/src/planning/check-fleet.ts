import {
  type FleetAction,
  type FleetController,
  FleetEpisode,
  type FleetKnob,
  type FleetRequests,
  type FleetTask,
  fleet,
  hpaInFlight,
  RateRule,
} from '@servegym/environments';
import { mean } from '@servegym/simulator/statistics';
import { type CheckEffort, type CheckResult, CheckRun, type TaskCheck } from '../core/checks/check-result.ts';
import type { CheckedEpisode, KnobValues, PlayedTask } from '../core/checks/checked-task.ts';
import { chanceLoses } from '../core/checks/game.ts';
import { conservation, repeatability } from '../core/checks/physics.ts';
import { type TunedControllers, tuneFleet } from '../learning/tune-fleet.ts';
import { planFleet } from './plan-fleet.ts';

/**
 * Checks that a task of `fleet` is a sound simulation and a game worth learning: conservation, the room over a tuned rule,
 * the worth of each knob, and ways to earn without serving. Plays the first windows of its episodes. Deterministic.
 */
export async function checkFleetTask(
  whole: FleetTask,
  effort: CheckEffort,
  onGroup?: (results: readonly CheckResult[]) => void,
): Promise<TaskCheck> {
  const task = { ...whole, windows: Math.min(whole.windows, effort.fleetWindows) };
  const played = playedFleet(task);
  const run = new CheckRun(onGroup);
  await run.add([conservation(played, effort), repeatability(played, effort)]);
  const tuned = tunedControllers(whole, task, effort);
  const traffic = effort.seeds.map((seed) => ({ seed, requests: fleet.drawRequests(task, seed) }));
  const returns = meanReturns(task, traffic, tuned);
  const { hpa } = returns;
  await run.add([
    rulePays(returns),
    chanceLoses(played, effort.seeds, { title: 'the autoscaler', figure: 'hpa_return', return: hpa }),
    ruleLoses(task, returns, tuned),
    knobsLeftAlone(task, traffic, tuned, returns),
  ]);
  await run.add(attacks(task, traffic, tuned, returns));
  return {
    ...{ taskId: whole.id, difficulty: whole.difficulty, passed: run.passed, results: run.results },
    bestConstant: { replicas: tuned.constantReplicas },
  };
}

/** A seed and its requests. */
interface Traffic {
  readonly seed: number;
  readonly requests: FleetRequests;
}

function playedFleet(task: FleetTask): PlayedTask<FleetAction> {
  const { id, difficulty, windows, defaultAction } = task;
  return {
    ...{ id, difficulty, windows, defaultAction, knobs: freeKnobs(task) },
    start: (seed) => checkedEpisode(new FleetEpisode(task, seed)),
  };
}

function checkedEpisode(episode: FleetEpisode): CheckedEpisode<FleetAction> {
  return {
    get done() {
      return episode.done;
    },
    get window() {
      return episode.window;
    },
    step: (action) => episode.step(action),
    observation: () => episode.observation(),
    unaccounted() {
      const { requests, completed, refused } = episode.totals;
      return requests - completed - refused - episode.inFlight.reduce((sum, count) => sum + count, 0);
    },
    fork() {
      const state = episode.snapshot();
      return () => {
        episode.restore(state);
        return checkedEpisode(episode);
      };
    },
  };
}

/** The knobs that decide something in the task, each value of a learner by itself. */
function freeKnobs(task: FleetTask): readonly KnobValues<FleetAction>[] {
  const idle = fleet.idleKnobs(task);
  return (Object.keys(fleet.bins) as FleetKnob[])
    .filter((knob) => !idle.includes(knob))
    .map((knob) => {
      const values: readonly number[] = fleet.bins[knob];
      return { knob, bins: values.map((value) => ({ name: `${value}`, values: [value] })) };
    });
}

/** The recorded settings where they still hold, else those of a shorter search. */
function tunedControllers(whole: FleetTask, task: FleetTask, { traces }: CheckEffort): TunedControllers {
  const recorded = fleet.anchors.reference(whole.id);
  return recorded?.fingerprint === fleet.anchors.fingerprint(whole) ? recorded : tuneFleet(task, traces);
}

/** Mean returns of the autoscaler, the rule and the planner that knows the requests. */
interface Returns {
  readonly hpa: number;
  readonly rule: number;
  readonly clairvoyant: number;
  /** Knobs that the planner or the rule turn. */
  readonly turned: ReadonlySet<FleetKnob>;
}

function meanReturns(
  task: FleetTask,
  traffic: readonly Traffic[],
  { rule, inFlightTarget }: TunedControllers,
): Returns {
  const earned = (controller: FleetController) =>
    mean(
      traffic.map(({ seed, requests }) => fleet.anchors.controlledReturn(task, seed, requests, controller)),
    );
  const plans = traffic.map(({ seed, requests }) => planned(task, seed, requests, rule));
  const isTurned = (knob: FleetKnob) =>
    plans.some(({ actions }) => actions.some((action) => action[knob] !== task.defaultAction[knob]));
  return {
    hpa: earned(hpaInFlight(inFlightTarget)),
    rule: earned(new RateRule(rule)),
    clairvoyant: mean(plans.map((plan) => plan.return)),
    turned: new Set(freeKnobs(task).flatMap(({ knob }) => (isTurned(knob) ? [knob] : []))),
  };
}

function planned(task: FleetTask, seed: number, requests: FleetRequests, rule: TunedControllers['rule']) {
  return planFleet(task, seed, { requests, controllers: [new RateRule(rule)] });
}

/** Share of the planner's gain over the autoscaler. */
function gainShare({ hpa, clairvoyant }: Returns, earned: number): number {
  return (earned - hpa) / Math.max(clairvoyant - hpa, 1e-9);
}

function rulePays({ hpa, rule }: Returns): CheckResult {
  return {
    id: 'tuning_pays',
    group: 'game',
    title: 'the tuned rule earns more than the autoscaler',
    outcome: rule > hpa ? 'pass' : 'fail',
    figures: { hpa_return: hpa, rule_return: rule },
    ...(rule <= hpa && {
      advice: 'Six parameters gain nothing: raise the load, or let it change enough that replicas matter.',
    }),
  };
}

/** Share of the planner's gain that the rule must stay below. A choice: a quarter is left, on easy tasks a tenth. */
const MOST_OF_RULE = { easy: 0.9, medium: 0.75, hard: 0.75 } as const;

function ruleLoses({ difficulty }: FleetTask, returns: Returns, { rule }: TunedControllers): CheckResult {
  const share = gainShare(returns, returns.rule);
  const most = MOST_OF_RULE[difficulty];
  return {
    id: 'rule_loses',
    group: 'game',
    title: `a tuned rule of six parameters takes at most ${most} of what a planner gains that knows the requests`,
    outcome: share <= most ? 'pass' : 'fail',
    figures: {
      ...{ hpa_return: returns.hpa, rule_return: returns.rule, clairvoyant_return: returns.clairvoyant },
      ...{ share, ...rule },
    },
    ...(share > most && {
      advice:
        'Replicas for the work that arrives are nearly all there is to it: add surges, or classes to choose between.',
    }),
  };
}

/** Share of the planner's gain that a knob must be worth, for it to matter. */
const LEAST_WORTH = 0.1;
/** Knobs that must matter; all that are free where fewer are. A choice. */
const LEAST_MATTERING = { easy: 1, medium: 2, hard: 3 } as const;

/**
 * Checks that it costs something to leave a knob at its default: what the planner loses, and what the rule loses or misses
 * against the best value that is held all the time. All are shares of the planner's gain over the autoscaler.
 */
function knobsLeftAlone(
  task: FleetTask,
  traffic: readonly Traffic[],
  { rule }: TunedControllers,
  returns: Returns,
): CheckResult {
  const knobs = freeKnobs(task);
  const least = Math.min(LEAST_MATTERING[task.difficulty], knobs.length);
  const ofRule = (change: Partial<FleetAction>) =>
    gainShare(returns, mean(traffic.map((each) => changedReturn(task, each, rule, () => change))));
  const costs = knobs.map(({ knob, bins }) => {
    const held = ofRule({ [knob]: task.defaultAction[knob] });
    const turned = gainShare(returns, returns.rule);
    const best = Math.max(turned, ...bins.map(({ values }) => ofRule({ [knob]: values[0] })));
    return { knob, planner: plannerLoss(task, traffic, knob, rule, returns), rule: best - held };
  });
  const mattering = costs.filter((cost) => Math.max(cost.planner, cost.rule) >= LEAST_WORTH);
  const isGame = mattering.length >= least;
  return {
    id: 'knobs_left_alone',
    group: 'game',
    title: `at least ${least} knobs cannot be left alone, as ${task.difficulty} tasks ask for: the default costs planner or rule ${LEAST_WORTH} of the planner's gain`,
    outcome: isGame ? 'pass' : 'fail',
    figures: {
      decisions: mattering.map(({ knob }) => knob).join(', ') || 'none',
      ...Object.fromEntries(costs.map(({ knob, planner }) => [`planner without ${knob}`, planner])),
      ...Object.fromEntries(costs.map((cost) => [`rule without ${cost.knob}`, cost.rule])),
    },
    ...(!isGame && {
      advice:
        'The other knobs are settings: found once and kept. Mask them, or let the traffic want more than replicas.',
    }),
  };
}

/** Share of its gain that the planner loses without a knob: 0 for those that it never turns. */
function plannerLoss(
  task: FleetTask,
  traffic: readonly Traffic[],
  knob: FleetKnob,
  rule: TunedControllers['rule'],
  returns: Returns,
): number {
  if (!returns.turned.has(knob)) return 0;
  const without = { ...task, maskedKnobs: [...(task.maskedKnobs ?? []), knob] };
  const earned = traffic.map(({ seed, requests }) => planned(without, seed, requests, rule).return);
  return 1 - gainShare(returns, mean(earned));
}

/** Change of the rule's action in a window, in which so many requests wait. */
type Change = (action: FleetAction, window: number, waiting: number) => Partial<FleetAction>;

/** Return of the rule with its actions changed. It sees what comes of them, and takes its own actions to be in force. */
function changedReturn(
  task: FleetTask,
  { seed, requests }: Traffic,
  rule: TunedControllers['rule'],
  change: Change,
): number {
  const own = new RateRule(rule);
  let chosen = task.defaultAction;
  return fleet.anchors.controlledReturn(task, seed, requests, {
    name: own.name,
    reset: () => own.reset(),
    act(step) {
      chosen = own.act({ ...step, previousAction: chosen });
      return { ...chosen, ...change(chosen, step.stepIndex, step.observation.num_requests_waiting) };
    },
  });
}

const drained = (windows: number, last: number): Change => {
  return (_, window) => (window >= windows - last ? { replicas: 0 } : {});
};

/** Requests waiting from which on a backlog is given up. */
const BACKLOG = 200;

const ATTACKS: readonly {
  readonly id: string;
  readonly title: string;
  /** May earn as much as the rule: where it changes nothing. */
  readonly mayTie?: boolean;
  readonly change: (task: FleetTask) => Change;
}[] = [
  { id: 'nobody_served', title: 'no request is served', change: () => () => ({ replicas: 0 }) },
  { id: 'one_replica', title: 'one replica', change: () => () => ({ replicas: 1 }) },
  {
    id: 'half_replicas',
    title: 'half of the replicas',
    change:
      () =>
      ({ replicas }) => ({ replicas: Math.ceil(replicas / 2) }),
  },
  {
    id: 'one_less',
    title: 'one replica less',
    change:
      () =>
      ({ replicas }) => ({ replicas: Math.max(1, replicas - 1) }),
  },
  {
    id: 'late_drain',
    title: 'drained before the last window',
    change: ({ windows }) => drained(windows, 1),
  },
  {
    id: 'early_drain',
    title: 'drained before the last eight windows',
    change: ({ windows }) => drained(windows, 8),
  },
  {
    id: 'backlog_dropped',
    title: `no replica while more than ${BACKLOG} requests wait`,
    mayTie: true,
    change: () => (_, __, waiting) => (waiting > BACKLOG ? { replicas: 0 } : {}),
  },
  {
    id: 'work_refused',
    title: 'no batch or best-effort work while any waits',
    mayTie: true,
    change: () => () => ({ admission_seconds: 0 }),
  },
];

/** Checks that serving less never earns more than the tuned rule. */
function attacks(
  task: FleetTask,
  traffic: readonly Traffic[],
  { rule }: TunedControllers,
  returns: Returns,
): CheckResult[] {
  return ATTACKS.map(({ id, title, mayTie = false, change }) => {
    const earned = mean(traffic.map((each) => changedReturn(task, each, rule, change(task))));
    const fails = mayTie ? earned <= returns.rule : earned < returns.rule;
    return {
      id,
      group: 'exploits',
      title: `earns ${mayTie ? 'no more than' : 'less than'} the tuned rule: ${title}`,
      outcome: fails ? 'pass' : 'fail',
      figures: { return: earned, rule_return: returns.rule },
      ...(!fails && {
        advice:
          'Serving less pays: raise the prices over the bill of the GPUs, or loosen the objectives that nobody meets.',
      }),
    };
  });
}
