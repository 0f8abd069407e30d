import { holdMaskedKnobs } from '../../masked-knobs.ts';
import { foresightShares, type RecordedReturns, recordedRoom } from '../../recorded-anchors.ts';
import { FleetEpisode } from '../fleet-episode.ts';
import { drawFleetRequests } from '../requests/draw-requests.ts';
import type { FleetRequests } from '../requests/fleet-requests.ts';
import { FLEET_TASKS } from '../task-registry.ts';
import type { FleetTask } from '../tasks/fleet-task.ts';
import type { FleetController } from './fleet-controller.ts';
import { RateRule } from './rate-rule.ts';
import { type FleetSeedReturns, recordedFleetReference, recordedFleetReturns } from './reference-returns.ts';
import { hpaInFlight } from './replica-scaler.ts';
import { fleetReturnBound } from './return-bound.ts';

/** Returns that an episode is held against, all on the same requests. */
export interface FleetAnchors {
  /** Of Kubernetes' HorizontalPodAutoscaler on requests in flight. */
  readonly default: number;
  /** Of the rule with the parameters that earned most in training. */
  readonly rule: number;
  readonly clairvoyant: number;
  /** No policy can exceed it. */
  readonly bound: number;
  /** True when `clairvoyant` is an estimate, because nothing is recorded for these requests. */
  readonly estimated: boolean;
}

/**
 * The recorded returns of (task, seed). Where there are none, the autoscaler and the rule are played, and the clairvoyant
 * is taken to come as far from the better of them towards the bound as it does over the recorded seeds of the task; for
 * a task of which nothing is recorded, to the bound.
 */
export function fleetAnchors(task: FleetTask, seed: number, requests: FleetRequests): FleetAnchors {
  const bound = fleetReturnBound(task, requests);
  const recorded = recordedFleetReturns(task, seed);
  if (recorded !== undefined) return { ...recorded, bound, estimated: false };
  const played = (controller: FleetController) => controlledReturn(task, seed, requests, controller);
  const standard = played(hpaInFlight());
  const rule = played(new RateRule(recordedFleetReference(task.id)?.rule));
  const best = Math.max(standard, rule);
  return {
    ...{ default: standard, rule, bound, estimated: true },
    // Rounding must not lift it above the bound.
    clairvoyant: Math.min(bound, best + foresightShare(task.id) * (bound - best)),
  };
}

/** Return of an episode that a controller plays, with masked knobs at their defaults. */
export function controlledReturn(
  task: FleetTask,
  seed: number,
  requests: FleetRequests,
  controller: FleetController,
): number {
  const episode = new FleetEpisode(task, seed, requests);
  controller.reset();
  while (!episode.done) {
    const { window: stepIndex, action: previousAction } = episode;
    const action = controller.act({ observation: episode.observation(), previousAction, stepIndex });
    episode.step(holdMaskedKnobs(task, action));
  }
  return episode.totals.reward;
}

/** Room over the rule in a task, over the recorded seeds; 1 where nothing is recorded. */
export function fleetRoom(taskId: string): number {
  const seeds = Object.values(recordedFleetReference(taskId)?.seeds ?? {});
  return recordedRoom(seeds.map(asTuned), 1);
}

/** Recorded seeds that are looked at: their requests have to be drawn again for the bound. */
const SEEDS = 5;

const foresightShare = foresightShares((taskId) => {
  if (!Object.hasOwn(FLEET_TASKS, taskId)) return [];
  const task = FLEET_TASKS[taskId as keyof typeof FLEET_TASKS];
  const seeds = Object.entries(recordedFleetReference(taskId)?.seeds ?? {}).slice(0, SEEDS);
  return seeds.map(([seed, returns]) => ({
    returns: asTuned(returns),
    bound: () => fleetReturnBound(task, drawFleetRequests(task, Number(seed))),
  }));
}, 1);

function asTuned({ rule: tuned, ...returns }: FleetSeedReturns): RecordedReturns {
  return { ...returns, tuned };
}
