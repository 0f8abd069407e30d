import {
  type FleetAction,
  type FleetController,
  FleetEpisode,
  type FleetRequests,
  type FleetTask,
  holdMaskedKnobs,
} from '@servegym/environments';
import { bestOf, type Plan, playWindows } from '../core/policy.ts';

/** One pass over a plan. */
interface Pass {
  /** Windows for which a change holds. */
  readonly changedWindows: number;
  /** Changes of the replicas that are tried. */
  readonly replicas: readonly number[];
  /** Other settings that are tried. */
  readonly settings: readonly Partial<FleetAction>[];
}

/** First all knobs over four minutes at a time, then the replicas over one. */
const PASSES: readonly Pass[] = [
  {
    changedWindows: 8,
    replicas: [-3, -2, -1, 1, 2, 3],
    settings: [
      { admission_seconds: 0 },
      { admission_seconds: 1 },
      { admission_seconds: 600 },
      { max_num_batched_tokens: 512 },
      { max_num_batched_tokens: 2048 },
      { routing_prefix: 0.5 },
      { routing_prefix: 2 },
    ],
  },
  { changedWindows: 2, replicas: [-2, -1, 1, 2], settings: [] },
];
/** Windows of the longest cold start. */
const coldStartWindows = ({ coldStartSeconds: [, longest], windowSeconds }: FleetTask) =>
  Math.ceil(longest / windowSeconds);
/** Windows behind a change that are played on to see its effect, longer than a cold start. */
const seenWindows = (task: FleetTask) => coldStartWindows(task) + 2;
/** Windows ahead of the demand that replicas may be asked for. */
const leads = (task: FleetTask) => [1, Math.max(1, coldStartWindows(task) - 1)];

type FleetPlan = Plan<FleetAction>;

/**
 * A good sequence of settings for requests that are known in advance. The actions of each controller are played as they
 * came and some windows earlier, as if it had known; the best of these is then changed, two windows at a time, wherever
 * more or fewer replicas or another queue bound earn more by the end of a cold start. It is never worse than any of the
 * controllers.
 */
export function planFleet(
  task: FleetTask,
  seed: number,
  given: { readonly requests: FleetRequests; readonly controllers: readonly FleetController[] },
): FleetPlan {
  const begun = () => new FleetEpisode(task, seed, given.requests);
  const plans = given.controllers.flatMap((controller) => {
    controller.reset();
    const played = playPlan(begun(), (step) => holdMaskedKnobs(task, controller.act(step)));
    const ahead = leads(task).map((lead) => asked(played.actions, lead));
    return [played, ...ahead.map((actions) => playPlan(begun(), ({ stepIndex }) => actions[stepIndex]!))];
  });
  return PASSES.reduce((plan, pass) => improvePlan(begun(), plan, pass), bestOf(plans));
}

/** Actions with the replicas of the busiest of the next `lead` windows. */
function asked(actions: readonly FleetAction[], lead: number): FleetAction[] {
  return actions.map((action, window) => ({
    ...action,
    replicas: Math.max(...actions.slice(window, window + lead + 1).map(({ replicas }) => replicas)),
  }));
}

/** The plan with the changes of a pass that earn; itself where they do not pay in the end. */
function improvePlan(episode: FleetEpisode, start: FleetPlan, pass: Pass): FleetPlan {
  const { task } = episode;
  const plan = start.actions.slice();
  while (!episode.done) {
    const from = episode.window;
    const to = Math.min(task.windows, from + pass.changedWindows);
    const end = Math.min(task.windows, to + seenWindows(task));
    const before = episode.snapshot();
    const earns = (changed: readonly FleetAction[]) => {
      episode.restore(before);
      for (const action of changed) episode.step(action);
      for (let window = to; window < end; window++) episode.step(plan[window]!);
      return episode.totals.reward;
    };
    let best = plan.slice(from, to);
    let most = earns(best);
    for (const changed of changesOf(best, task, pass)) {
      const total = earns(changed);
      if (total <= most) continue;
      most = total;
      best = changed;
    }
    episode.restore(before);
    for (const [i, action] of best.entries()) {
      plan[from + i] = action;
      episode.step(action);
    }
  }
  const total = episode.totals.reward;
  return total > start.return ? { actions: plan, return: total } : start;
}

/** Changes of the actions that leave masked knobs alone. */
function changesOf(kept: readonly FleetAction[], task: FleetTask, pass: Pass): FleetAction[][] {
  const changes = [
    ...pass.replicas.map((change) =>
      kept.map((action) => ({
        ...action,
        replicas: Math.max(0, Math.min(task.maxReplicas, action.replicas + change)),
      })),
    ),
    ...pass.settings.map((settings) => kept.map((action) => ({ ...action, ...settings }))),
  ];
  if (task.maskedKnobs === undefined) return changes;
  const held = changes.map((changed) => changed.map((action) => holdMaskedKnobs(task, action)));
  return held.filter((changed) => changed.some((action, i) => differs(action, kept[i]!)));
}

function differs(one: FleetAction, other: FleetAction): boolean {
  return (Object.keys(one) as (keyof FleetAction)[]).some((knob) => one[knob] !== other[knob]);
}

function playPlan(episode: FleetEpisode, act: FleetController['act']): FleetPlan {
  const actions: FleetAction[] = [];
  playWindows(episode, (step) => {
    const action = act(step);
    actions.push(action);
    return action;
  });
  return { actions, return: episode.totals.reward };
}
