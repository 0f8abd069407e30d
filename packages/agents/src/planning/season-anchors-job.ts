import { llmserve, type ServeAction } from '@servegym/environments';
import type { Json } from '@servegym/jobs';
import { planClairvoyant } from './plan-clairvoyant.ts';

/** The episode of a season. */
export interface SeasonAnchorsInput {
  readonly taskId: string;
  readonly seed: number;
}

/** A return, and actions that earn it. The last one is repeated to the end of the episode. */
export interface PlayedAnchor {
  readonly return: number;
  readonly actions: readonly ServeAction[];
}

/** Answer of the job. */
export interface ServeSeasonAnchors {
  readonly default: PlayedAnchor;
  readonly constant: PlayedAnchor;
  readonly clairvoyant: PlayedAnchor;
}

/** The job `season-anchors`: plays the default, the best constant and the planner that knows the traffic on one seed. */
export function runJob(input: Json): Json {
  const { taskId, seed } = input as unknown as SeasonAnchorsInput;
  const task = llmserve.tasks.find(taskId);
  if (task === undefined) throw new RangeError(`Expected a task, got ${taskId}`);
  const requests = llmserve.drawRequests(task, seed);
  const configurations = llmserve.anchors.configurations(task);
  const kept = (action: ServeAction): PlayedAnchor => ({
    return: llmserve.anchors.constantReturn(task, seed, requests, action),
    actions: [action],
  });
  const plan = planClairvoyant(task, seed, { requests, configurations });
  const anchors: ServeSeasonAnchors = {
    default: kept(task.defaultAction),
    constant: kept(configurations[0]),
    clairvoyant: { return: plan.return, actions: withoutRepeats(plan.actions) },
  };
  return anchors as unknown as Json;
}

/** The actions up to the last change. */
function withoutRepeats(actions: readonly ServeAction[]): readonly ServeAction[] {
  const last = JSON.stringify(actions.at(-1));
  let length = actions.length;
  while (length > 1 && JSON.stringify(actions[length - 2]) === last) length--;
  return actions.slice(0, length);
}
