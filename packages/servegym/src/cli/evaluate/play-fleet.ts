import type { FleetPolicy } from '@servegym/agents';
import {
  FleetEpisode,
  type FleetRequests,
  type FleetTask,
  fleet,
  REQUEST_CLASSES,
} from '@servegym/environments';
import { percent, snakeCase } from '@servegym/operators/report';
import { readTrace } from '@servegym/operators/traces';
import { findProfile } from '@servegym/profiles';
import { counted, drawPriorities, scaleRate } from '@servegym/simulator';
import { isTrafficModel } from '../arguments/scenario-options.ts';
import { InputError } from '../failure.ts';
import { type Form, table } from '../output/print-result.ts';
import type { EvaluateOptions } from './command.ts';

export type FleetRun = ReturnType<typeof playFleet>;

/** Plays a policy to the end of an episode. */
export function playFleet(task: FleetTask, seed: number, traffic: FleetRequests, policy: FleetPolicy) {
  const begin = performance.now();
  const episode = new FleetEpisode(task, seed, traffic);
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
  const { requests, completed, attained: inSlo, refused, revenueUsd, gpuUsd, replicaHours } = episode.totals;
  return {
    policy: policy.name,
    requests,
    completed,
    refused,
    usd: revenueUsd - gpuUsd,
    revenueUsd,
    gpuUsd,
    replicaHours,
    /** Share completed inside the objectives of their class. */
    sloAttainment: requests === 0 ? 1 : inSlo / requests,
    /** The same, of those of a class that arrived. */
    sloAttainmentByClass: Object.fromEntries(
      REQUEST_CLASSES.flatMap((name, kind) =>
        arrived[kind] === 0 ? [] : [[name, attained[kind] / arrived[kind]] as const],
      ),
    ),
    /** Most replicas billed at the end of a window. */
    mostReplicas,
    changes,
    /** Wall time of the simulation, s. */
    wallS: (performance.now() - begin) / 1000,
  };
}

/** The task with the profile, length and requests that were asked for. @throws InputError, TaskError or SimulatorError */
export async function fleetRequests(seed: number, { table, shift, ...options }: EvaluateOptions) {
  const { task: asked, traffic: given, maxSteps, profile, rateScale = 1, classShares } = options;
  if (table !== undefined || shift !== undefined)
    throw new InputError('--table and --shift mean nothing to an episode of fleet with --seed');
  const isModel = isTrafficModel(given);
  const known = fleet.choose({
    task_id: asked === 'all' ? 'diurnal' : asked,
    ...(isModel && { traffic: given }),
  });
  const traffic = isModel ? undefined : given;
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
  const classes = classShares && drawPriorities(requests, classShares, seed);
  return {
    // One window more than the trace lasts, so that the last requests can be answered.
    task: { ...task, windows: Math.ceil(seconds / task.windowSeconds) + 1 },
    requests: fleet.traceRequests(trace, classes),
    source: trace.source,
  };
}

type FleetRuns = Awaited<ReturnType<typeof fleetRequests>> & { readonly runs: readonly FleetRun[] };

const hoursOf = ({ windows, windowSeconds }: FleetTask) => (windows * windowSeconds) / 3600;

/** What autoscalers earn and cost; a row for each policy, the best first. */
export const fleetForm: Form<FleetRuns> = {
  json: ({ task, source, runs }) => snakeCase({ source, profile: task.profile, hours: hoursOf(task), runs }),
  text({ task, source, requests, runs }) {
    return [
      `${source}: ${counted(requests.inputTokens.length, 'request')} in ${hoursOf(task).toFixed(1)} h on ${task.profile}`,
      '',
      ...table(
        runs.toSorted((a, b) => b.usd - a.usd),
        [
          ['policy', ({ policy }) => policy],
          ['USD', ({ usd }) => usd.toFixed(2)],
          ['revenue', ({ revenueUsd }) => revenueUsd.toFixed(2)],
          ['GPUs', ({ gpuUsd }) => gpuUsd.toFixed(2)],
          ['replica h', ({ replicaHours }) => replicaHours.toFixed(1)],
          ['most', ({ mostReplicas }) => String(mostReplicas)],
          ['changes', ({ changes }) => String(changes)],
          ['in SLO', ({ sloAttainment }) => percent(sloAttainment)],
          ['refused', (run) => percent(run.requests === 0 ? 0 : run.refused / run.requests)],
          ['wall', ({ wallS }) => `${wallS.toFixed(2)} s`],
        ],
      ),
      '',
      'USD: revenue of the requests inside their objectives, less the GPUs.',
    ].join('\n');
  },
};
