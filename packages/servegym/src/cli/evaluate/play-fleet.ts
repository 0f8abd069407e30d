import type { FleetPolicy } from '@servegym/agents';
import {
  FleetEpisode,
  type FleetRequests,
  type FleetTask,
  fleet,
  REQUEST_CLASSES,
} from '@servegym/environments';
import { readTrace } from '@servegym/operators/traces';
import { findProfile } from '@servegym/profiles';
import { drawPriorities, scaleRate } from '@servegym/simulator';
import { InputError } from '../input-error.ts';
import type { EvaluateOptions } from './command.ts';

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

/** The task with the profile, length and requests that were asked for. @throws InputError, TaskError or SimulatorError */
export async function fleetRequests(
  seed: number,
  { task: asked, traffic, maxSteps, profile, rateScale = 1, classShares, table, shift }: EvaluateOptions,
): Promise<{ readonly task: FleetTask; readonly requests: FleetRequests; readonly source: string }> {
  if (table !== undefined || shift !== undefined)
    throw new InputError('--table and --shift mean nothing to an episode of fleet with --seed');
  const known = fleet.choose({ task_id: asked === 'all' ? 'diurnal' : asked });
  const task = { ...known, profile: findProfile(profile ?? known.profile).name };
  if (traffic === undefined) {
    if (classShares !== undefined)
      throw new InputError(
        '--class-shares: expected with --traffic and a file; the requests of a task have classes',
      );
    const played = fleet.scaleArrivals({ ...task, windows: maxSteps ?? task.windows }, rateScale);
    return { task: played, requests: fleet.drawRequests(played, seed), source: `task ${task.id}` };
  }
  if (maxSteps !== undefined)
    throw new InputError(
      '--max-steps cannot be used with requests of your own, which are played to their end',
    );
  if (classShares !== undefined && classShares.length > REQUEST_CLASSES.length)
    throw new InputError(
      `--class-shares: expected at most ${REQUEST_CLASSES.length} shares (${REQUEST_CLASSES.join(', ')}), got ${classShares.length}`,
    );
  const trace = scaleRate((await readTrace(traffic)).trace, rateScale);
  const requests = trace.arrivalMs.length;
  const seconds = trace.arrivalMs[requests - 1] / 1000;
  const classes = classShares === undefined ? undefined : drawPriorities(requests, classShares, seed);
  return {
    // One window more than the trace lasts, so that the last requests can be answered.
    task: { ...task, windows: Math.ceil(seconds / task.windowSeconds) + 1 },
    requests: fleet.traceRequests(trace, classes),
    source: trace.source,
  };
}
