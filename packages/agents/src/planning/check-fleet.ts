import {
  type FleetAction,
  type FleetController,
  type FleetKnob,
  type FleetRequests,
  type FleetTask,
  fleet,
  hpaInFlight,
  ruleController,
} from '@servegym/environments';
import { mean } from '@servegym/simulator/statistics';
import { type Attack, attackFails, chanceLoses } from '../core/checks/game-checks.ts';
import { conservation, repeatability } from '../core/checks/simulation-checks.ts';
import {
  type CheckEffort,
  type CheckResult,
  judge,
  type OnGroup,
  runChecks,
  type TaskCheck,
} from '../core/checks/task-check.ts';
import { type TunedControllers, tuneFleet } from '../learning/coordinate-search.ts';
import { drawTraffic } from '../learning/learning-environment.ts';
import { checkedFleet } from './checked-tasks.ts';
import { planFleet } from './plan-fleet.ts';

/**
 * Checks that a task of `fleet` is a sound simulation and a game worth learning: conservation, the room over a tuned rule,
 * the worth of each knob, and ways to earn without serving. Plays the first windows of its episodes. Deterministic.
 */
export function checkFleetTask(whole: FleetTask, effort: CheckEffort, onGroup?: OnGroup): Promise<TaskCheck> {
  const task = { ...whole, windows: Math.min(whole.windows, effort.fleetWindows) };
  const checked = checkedFleet(task);
  return runChecks<FleetGame>(
    {
      task: whole,
      physics: () => [conservation(checked, effort), repeatability(checked, effort)],
      async tune() {
        const recorded = fleet.anchors.reference(whole.id);
        // Those recorded where they still hold, else those of a shorter search.
        const holds = recorded?.fingerprint === fleet.anchors.fingerprint(whole);
        return new FleetGame(task, effort, holds ? recorded : await tuneFleet(task, effort.traces));
      },
      groups: [
        (game) => [
          judge('fleet', {
            ...{ id: 'tuning_pays', holds: game.rule > game.hpa },
            figures: { hpa_return: game.hpa, rule_return: game.rule },
          }),
          chanceLoses(checked, effort.seeds, {
            ...{ title: 'the autoscaler', figure: 'hpa_return', return: game.hpa },
          }),
          ruleLoses(game),
          knobsLeftAlone(game),
        ],
        attacks,
      ],
      bestConstant: ({ tuned }) => ({ replicas: tuned.constantReplicas }),
    },
    onGroup,
  );
}

/** Change of the rule's action in a window, in which so many requests wait. */
type Change = (action: FleetAction, window: number, waiting: number) => Partial<FleetAction>;

/** A task with its traffic, and what autoscaler, rule and the planner that knows the requests earn on it. */
class FleetGame {
  readonly task: FleetTask;
  readonly tuned: TunedControllers;
  /** Knobs that decide something. */
  readonly knobs: readonly FleetKnob[];
  /** Mean returns. */
  readonly hpa: number;
  readonly rule: number;
  readonly clairvoyant: number;
  /** Knobs that the planner or the rule turn. */
  readonly turned: ReadonlySet<FleetKnob>;
  readonly #traffic: readonly { readonly seed: number; readonly requests: FleetRequests }[];

  constructor(task: FleetTask, { seeds }: CheckEffort, tuned: TunedControllers) {
    this.task = task;
    this.tuned = tuned;
    this.knobs = checkedFleet(task).knobs.map(({ knob }) => knob);
    this.#traffic = drawTraffic(fleet, task, seeds);
    const plans = this.#plans(task);
    const isTurned = (knob: FleetKnob) =>
      plans.some(({ actions }) => actions.some((action) => action[knob] !== task.defaultAction[knob]));
    this.hpa = this.#earned(() => hpaInFlight(tuned.inFlightTarget));
    this.rule = this.#earned(() => ruleController(tuned.rule));
    this.clairvoyant = mean(plans.map((plan) => plan.return));
    this.turned = new Set(this.knobs.filter(isTurned));
  }

  /** Share of the planner's gain over the autoscaler. */
  shareOf(earned: number): number {
    return (earned - this.hpa) / Math.max(this.clairvoyant - this.hpa, 1e-9);
  }

  /** Share that the planner takes of its gain when a knob stays at the task's default. */
  plannedWithout(knob: FleetKnob): number {
    const without = { ...this.task, maskedKnobs: [...(this.task.maskedKnobs ?? []), knob] };
    return this.shareOf(mean(this.#plans(without).map((plan) => plan.return)));
  }

  /** Mean return of the rule with its actions changed. It sees what comes of them, and takes its own actions to be in force. */
  changed(change: Change): number {
    return this.#earned(() => {
      const own = ruleController(this.tuned.rule);
      let chosen = this.task.defaultAction;
      return {
        name: own.name,
        reset: () => own.reset(),
        act(step) {
          chosen = own.act({ ...step, previousAction: chosen });
          return { ...chosen, ...change(chosen, step.stepIndex, step.observation.num_requests_waiting) };
        },
      };
    });
  }

  #plans(task: FleetTask) {
    return this.#traffic.map(({ seed, requests }) =>
      planFleet(task, seed, { requests, controllers: [ruleController(this.tuned.rule)] }),
    );
  }

  #earned(controller: () => FleetController): number {
    const { controlledReturn } = fleet.anchors;
    return mean(
      this.#traffic.map(({ seed, requests }) => controlledReturn(this.task, seed, requests, controller())),
    );
  }
}

/** Share of the planner's gain that the rule must stay below. A choice: a quarter is left, on easy tasks a tenth. */
const MOST_OF_RULE = { easy: 0.9, medium: 0.75, hard: 0.75 } as const;

function ruleLoses(game: FleetGame): CheckResult {
  const share = game.shareOf(game.rule);
  const most = MOST_OF_RULE[game.task.difficulty];
  return judge('fleet', {
    ...{ id: 'rule_loses', holds: share <= most, values: { most } },
    figures: {
      ...{ hpa_return: game.hpa, rule_return: game.rule, clairvoyant_return: game.clairvoyant },
      ...{ share, ...game.tuned.rule },
    },
  });
}

/** Share of the planner's gain that a knob must be worth, for it to matter. */
const LEAST_WORTH = 0.1;
/** Knobs that must matter; all that are free where fewer are. A choice. */
const LEAST_MATTERING = { easy: 1, medium: 2, hard: 3 } as const;

/**
 * Checks that it costs something to leave a knob at its default: what the planner loses, and what the rule loses or misses
 * against the best value that is held all the time. All are shares of the planner's gain over the autoscaler.
 */
function knobsLeftAlone(game: FleetGame): CheckResult {
  const { task, knobs, turned } = game;
  const least = Math.min(LEAST_MATTERING[task.difficulty], knobs.length);
  const ofRule = (change: Partial<FleetAction>) => game.shareOf(game.changed(() => change));
  const costs = knobs.map((knob) => {
    const held = ofRule({ [knob]: task.defaultAction[knob] });
    const best = Math.max(
      game.shareOf(game.rule),
      ...fleet.bins[knob].map((value) => ofRule({ [knob]: value })),
    );
    // Nothing for those that the planner never turns.
    return { knob, planner: turned.has(knob) ? 1 - game.plannedWithout(knob) : 0, rule: best - held };
  });
  const mattering = costs.filter((cost) => Math.max(cost.planner, cost.rule) >= LEAST_WORTH);
  return judge('fleet', {
    ...{ id: 'knobs_left_alone', holds: mattering.length >= least },
    values: { least, difficulty: task.difficulty, worth: LEAST_WORTH },
    figures: {
      decisions: mattering.map(({ knob }) => knob).join(', ') || 'none',
      ...Object.fromEntries(costs.map(({ knob, planner }) => [`planner without ${knob}`, planner])),
      ...Object.fromEntries(costs.map((cost) => [`rule without ${cost.knob}`, cost.rule])),
    },
  });
}

const drained =
  (last: number) =>
  ({ windows }: FleetTask): Change =>
  (_, window) =>
    window >= windows - last ? { replicas: 0 } : {};

/** Requests waiting from which on a backlog is given up. */
const BACKLOG = 200;

/** Ways to serve less than the tuned rule does. */
const ATTACKS: readonly (Attack & { readonly change: (task: FleetTask) => Change })[] = [
  { id: 'nobody_served', change: () => () => ({ replicas: 0 }) },
  { id: 'one_replica', change: () => () => ({ replicas: 1 }) },
  { id: 'half_replicas', change: () => (action) => ({ replicas: Math.ceil(action.replicas / 2) }) },
  { id: 'one_less', change: () => (action) => ({ replicas: Math.max(1, action.replicas - 1) }) },
  { id: 'late_drain', change: drained(1) },
  { id: 'early_drain', change: drained(8) },
  {
    ...{ id: 'backlog_dropped', mayTie: true, values: { backlog: BACKLOG } },
    change: () => (_, __, waiting) => (waiting > BACKLOG ? { replicas: 0 } : {}),
  },
  { id: 'work_refused', mayTie: true, change: () => () => ({ admission_seconds: 0 }) },
];

/** Checks that serving less never earns more than the tuned rule. */
function attacks(game: FleetGame): CheckResult[] {
  return ATTACKS.map((attack) => {
    const earned = game.changed(attack.change(game.task));
    const holds = attack.mayTie ? earned <= game.rule : earned < game.rule;
    const figures = { return: earned, rule_return: game.rule };
    return attackFails('fleet', attack, { name: 'the tuned rule', holds }, figures);
  });
}
