import { type AnchoredReturn, episodeJobs, findPolicy, type SeededTraffic } from '@servegym/agents';
import { llmserve, regretScore } from '@servegym/environments';

type EpisodeAnchors = ReturnType<typeof llmserve.anchors.of>;

import type { Job, Json } from '@servegym/jobs';
import { sourceFolder, sourceHash } from '../../packages/servegym/src/cli/jobs/source-hash.ts';
import type { BenchmarkContext, LearnedPolicy } from './learn-all.ts';

/** A player: an agent of the catalogue by its name, or a policy that was learned. */
export type Player = string | LearnedPolicy;

/** An episode of a player, with the grader's score. */
export interface ScoredEpisode extends AnchoredReturn {
  readonly score: number;
}

/** The episodes of each player, in the order of the seeds. What was played before comes from the cache. */
export async function scorePolicies(
  players: readonly Player[],
  traffic: SeededTraffic,
  context: BenchmarkContext,
): Promise<ScoredEpisode[][]> {
  const anchors = await findAnchors(traffic, context);
  const room = llmserve.anchors.room(traffic.taskId);
  const scored: ScoredEpisode[][] = [];
  for (const player of players) {
    const recorded = anchors.map((each) => recordedReturn(player, each));
    const open = traffic.seeds.filter((_, i) => recorded[i] === null);
    const played = await findReturns(player, { ...traffic, seeds: open }, context);
    const returns = recorded.map((known) => known ?? played.shift()!);
    scored.push(
      returns.map((total, i) => ({
        score: regretScore(total, anchors[i], room),
        ...{ return: total, anchors: anchors[i] },
      })),
    );
  }
  return scored;
}

/** Return of a planner on this very traffic when the anchors were recorded; `null` where it was not played. */
function recordedReturn(player: Player, { planner, clairvoyant, estimated }: EpisodeAnchors): number | null {
  if (estimated) return null;
  if (player === 'oracle') return clairvoyant;
  return player === 'mpc' ? planner : null;
}

async function findAnchors(traffic: SeededTraffic, context: BenchmarkContext): Promise<EpisodeAnchors[]> {
  const found = await findAll(
    `anchors/${traffic.taskId}-${traffic.shift ?? 'unshifted'}`,
    [fingerprint(traffic), llmserve.anchors.reference(traffic.taskId) as unknown as Json],
    traffic,
    context,
    async (seeds) =>
      seeds.map((seed) => ({
        kind: 'traffic-anchors',
        input: { kind: 'traffic-anchors', ...traffic, seeds: [seed] } as unknown as Json,
      })),
  );
  return found.flat() as unknown as EpisodeAnchors[];
}

async function findReturns(
  player: Player,
  traffic: SeededTraffic,
  context: BenchmarkContext,
): Promise<number[]> {
  const { jobs } = context;
  const { taskId, shift } = traffic;
  const isLearned = typeof player !== 'string';
  const name = isLearned ? player.name : `${player}-${taskId}`;
  const policy = findPolicy('llmserve', isLearned ? player.file : player);
  const { constant, phases } = llmserve.anchors.reference(taskId) ?? {};
  const found = await findAll(
    `returns/${name}-${shift ?? 'unshifted'}`,
    [
      fingerprint(traffic),
      isLearned ? await jobs.share(player.file) : player,
      codeOfPolicies(),
      { constant, phases } as unknown as Json,
    ],
    traffic,
    context,
    (seeds) => {
      const inputs = { scenario: shift === null ? {} : { shift } };
      return episodeJobs(
        'episode-return',
        { environment: 'llmserve', policy, taskIds: [taskId], seeds, inputs },
        jobs,
      );
    },
  );
  return found as number[];
}

/** Finds something for each seed of the traffic, by jobs where the cache has nothing. */
async function findAll(
  name: string,
  dependsOn: Json,
  { seeds }: SeededTraffic,
  { jobs, cache }: BenchmarkContext,
  jobsFor: (seeds: readonly number[]) => Promise<readonly Job[]>,
): Promise<Json[]> {
  const findings = cache.findings(name, dependsOn);
  const missing = seeds.filter((seed) => !findings.has(seed));
  await jobs.run(await jobsFor(missing), {
    onResult: (found, index) => findings.add([missing[index]!], [found]),
  });
  return findings.of(seeds);
}

function fingerprint({ taskId, shift }: SeededTraffic): string {
  return llmserve.anchors.fingerprint(llmserve.choose({ task_id: taskId, ...(shift !== null && { shift }) }));
}

let code: string | undefined;

/** Hash of the sources that decide how policies act. */
function codeOfPolicies(): string {
  code ??= sourceHash([sourceFolder('@servegym/agents')]);
  return code;
}
