import { join } from 'node:path';
import {
  type AnchoredReturn,
  type PolicyReturnsInput,
  type SeededTraffic,
  sharedOfPolicy,
  sharePolicy,
} from '@servegym/agents';
import { type EpisodeAnchors, llmserve, regretScore } from '@servegym/environments';
import type { Job, Json } from '@servegym/jobs';
import { sourceFolder, sourceHash } from '../../packages/servegym/src/cli/jobs/source-hash.ts';
import { PLANNERS } from './benchmark-plan.ts';
import type { BenchmarkContext, LearnedPolicy } from './learn-all.ts';

/** A player: an agent of the catalogue by its name, or a policy that was learned. */
export type Player = string | LearnedPolicy;

/** Episodes of a job: of agents that plan, and of others. */
const PLANNED_CHUNK = 1;
const CHUNK = 10;

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
    {
      chunk: CHUNK,
      jobFor: (seeds) => ({ kind: 'traffic-anchors', input: { ...traffic, seeds } as unknown as Json }),
    },
  );
  return found as unknown as EpisodeAnchors[];
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
  const policy = await sharePolicy(jobs, isLearned ? player.file : player);
  const shared = sharedOfPolicy(policy);
  const { constant, phases } = llmserve.anchors.reference(taskId) ?? {};
  const found = await findAll(
    `returns/${name}-${shift ?? 'unshifted'}`,
    [
      fingerprint(traffic),
      shared[0] ?? (player as string),
      codeOfPolicies(),
      { constant, phases } as unknown as Json,
    ],
    traffic,
    context,
    {
      chunk: !isLearned && PLANNERS.has(player) ? PLANNED_CHUNK : CHUNK,
      jobFor(seeds) {
        const input: PolicyReturnsInput = { policy, taskId, shift, seeds };
        return { kind: 'policy-returns', input: input as unknown as Json, shared };
      },
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
  work: { readonly chunk: number; readonly jobFor: (seeds: readonly number[]) => Job },
): Promise<Json[]> {
  const { chunk, jobFor } = work;
  const findings = cache.findings(name, dependsOn);
  const missing = seeds.filter((seed) => !findings.has(seed));
  const chunks = Array.from({ length: Math.ceil(missing.length / chunk) }, (_, c) =>
    missing.slice(c * chunk, (c + 1) * chunk),
  );
  await jobs.run(chunks.map(jobFor), {
    onResult: (found, index) => findings.add(chunks[index], found as readonly Json[]),
  });
  return findings.of(seeds);
}

function fingerprint({ taskId, shift }: SeededTraffic): string {
  return llmserve.anchors.fingerprint(llmserve.choose({ task_id: taskId, ...(shift !== null && { shift }) }));
}

let code: string | undefined;

/** Hash of the sources that decide how policies act. */
function codeOfPolicies(): string {
  const agents = sourceFolder('@servegym/agents');
  code ??= sourceHash([join(agents, 'llmserve')]);
  return code;
}
