import type { FleetTask } from '@servegym/environments';
import { alignedRows } from '@servegym/operators/report';
import type { FleetRun } from './play-fleet.ts';

/** The object that `fleet --json` prints. */
export function fleetJson(task: FleetTask, source: string, runs: readonly FleetRun[]) {
  return {
    source,
    profile: task.profile,
    hours: (task.windows * task.windowSeconds) / 3600,
    runs: runs.map((run) => ({
      policy: run.policy,
      requests: run.requests,
      completed: run.completed,
      refused: run.refused,
      usd: run.revenueUsd - run.gpuUsd,
      revenue_usd: run.revenueUsd,
      gpu_usd: run.gpuUsd,
      replica_hours: run.replicaHours,
      slo_attainment: run.requests === 0 ? 1 : run.inSlo / run.requests,
      slo_attainment_by_class: run.sloAttainment,
      most_replicas: run.mostReplicas,
      changes: run.changes,
      wall_s: run.wallS,
    })),
  };
}

/** Text of `fleet`: a row for each policy, the best first. */
export function fleetTable(
  { profile, windows, windowSeconds }: FleetTask,
  source: string,
  requests: number,
  runs: readonly FleetRun[],
): string {
  const hours = ((windows * windowSeconds) / 3600).toFixed(1);
  const usd = (amount: number) => amount.toFixed(2);
  const share = (part: number) => `${(100 * part).toFixed(1)} %`;
  const rows = runs
    .toSorted((a, b) => b.revenueUsd - b.gpuUsd - (a.revenueUsd - a.gpuUsd))
    .map((run) => [
      run.policy,
      usd(run.revenueUsd - run.gpuUsd),
      usd(run.revenueUsd),
      usd(run.gpuUsd),
      run.replicaHours.toFixed(1),
      String(run.mostReplicas),
      String(run.changes),
      share(run.requests === 0 ? 1 : run.inSlo / run.requests),
      share(run.requests === 0 ? 0 : run.refused / run.requests),
      `${run.wallS.toFixed(2)} s`,
    ]);
  const head = [
    'policy',
    'USD',
    'revenue',
    'GPUs',
    'replica h',
    'most',
    'changes',
    'in SLO',
    'refused',
    'wall',
  ];
  return [
    `${source}: ${requests.toLocaleString('en-US')} requests in ${hours} h on ${profile}`,
    '',
    ...alignedRows([head, ...rows]),
    '',
    'USD: revenue of the requests inside their objectives, less the GPUs.',
  ].join('\n');
}
