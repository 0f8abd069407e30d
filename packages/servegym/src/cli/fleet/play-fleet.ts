import type { FleetPolicy } from '@servegym/agents';
import { FleetEpisode, type FleetRequests, type FleetTask, REQUEST_CLASSES } from '@servegym/environments';

/** A policy's run over the requests of a fleet. */
export interface FleetRun {
  readonly policy: string;
  readonly requests: number;
  readonly completed: number;
  /** Completed inside the objectives of their class. */
  readonly inSlo: number;
  readonly refused: number;
  /** By class, of those that arrived. */
  readonly sloAttainment: Readonly<Record<string, number>>;
  readonly revenueUsd: number;
  readonly gpuUsd: number;
  readonly replicaHours: number;
  /** Most replicas billed at the end of a window. */
  readonly mostReplicas: number;
  /** Changes of the number of replicas wanted. */
  readonly changes: number;
  /** Wall time of the simulation, s. */
  readonly wallS: number;
}

/** Plays a policy to the end of an episode. */
export function playFleet(
  task: FleetTask,
  seed: number,
  requests: FleetRequests,
  policy: FleetPolicy,
): FleetRun {
  const begin = performance.now();
  const episode = new FleetEpisode(task, seed, requests);
  const arrived = REQUEST_CLASSES.map(() => 0);
  const attained = REQUEST_CLASSES.map(() => 0);
  let mostReplicas = 0;
  let changes = 0;
  let reward: number | null = null;
  policy.reset({ taskId: task.id, seed });
  while (!episode.done) {
    const { window: stepIndex, action: previousAction } = episode;
    const observation = episode.observation();
    const action = policy.act({ observation, reward, previousAction, stepIndex });
    if (stepIndex > 0 && action.replicas !== previousAction.replicas) changes++;
    reward = episode.step(action);
    mostReplicas = Math.max(mostReplicas, episode.fleet.replicas.length);
    for (const [kind, ledger] of episode.ledger.classes.entries()) {
      arrived[kind] += ledger.arrived;
      attained[kind] += ledger.attained;
    }
  }
  const { totals } = episode;
  return {
    policy: policy.name,
    ...{ requests: totals.requests, completed: totals.completed, inSlo: totals.attained },
    refused: totals.refused,
    sloAttainment: Object.fromEntries(
      REQUEST_CLASSES.flatMap((name, kind) =>
        arrived[kind] === 0 ? [] : [[name, attained[kind] / arrived[kind]] as const],
      ),
    ),
    ...{ revenueUsd: totals.revenueUsd, gpuUsd: totals.gpuUsd },
    replicaHours: totals.replicaHours,
    ...{ mostReplicas, changes, wallS: (performance.now() - begin) / 1000 },
  };
}
