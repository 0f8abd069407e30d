import {
  type EngineProfile,
  kvPoolBlocks,
  podAutoscaler,
  portableMath,
  weightVariant,
} from '@servegym/simulator';
import { FINGERPRINT_SEED, printPlay, recordedReturns, type WindowAnchors } from '../../grading.ts';
import { holdMaskedKnobs } from '../../window-environment.ts';
import { drawFleetRequests } from '../draw-requests.ts';
import { FleetEpisode, fleetPools } from '../fleet-episode.ts';
import { BLOCK_TOKENS, type FleetRequests, NO_REQUEST, requestPrices } from '../fleet-requests.ts';
import { FLEET_TASKS, type FleetTask } from '../fleet-task.ts';
import { type FleetAction, type FleetObservation, fleetActionSchema } from '../schema.ts';
import { type FleetController, type RateRuleParameters, rateRule, scalingController } from './controllers.ts';
import recorded from './reference-returns.json' with { type: 'json' };

/** Recorded returns of a task. */
export interface FleetTaskReference {
  readonly fingerprint: string;
  /** The parameters of the rule that earned most on the training seeds. */
  readonly rule: RateRuleParameters;
  /** The same of `hpa`: requests in flight a replica. */
  readonly inFlightTarget: number;
  /** The same of `static`. */
  readonly constantReplicas: number;
  readonly seeds: Readonly<Record<string, FleetSeedReturns>>;
}

/** Returns on the requests of one seed. */
export interface FleetSeedReturns {
  /** Of the HorizontalPodAutoscaler. */
  readonly default: number;
  /** Of the rule with the parameters that earned most in training. */
  readonly rule: number;
  /** Of a planner that knows the requests. */
  readonly clairvoyant: number;
}

/** Windows of the episode that is played for a fingerprint, and what they change of the default settings. */
const PLAYED: readonly Partial<FleetAction>[] = [
  {},
  { replicas: 6, max_num_batched_tokens: 1024 },
  { replicas: 5, routing_prefix: 1, routing_cache: 0.5 },
  { replicas: 2, max_num_active_seqs: 64 },
  { replicas: 6, prefill_replicas: 2, admission_seconds: 1 },
  { replicas: 6, prefill_replicas: 1, max_num_batched_tokens: 8192 },
  { replicas: 1, admission_seconds: 1 },
  {},
];

/** The recorded returns. */
export const fleetReturns = recordedReturns<FleetTask, FleetSeedReturns, FleetTaskReference>({
  url: new URL('./reference-returns.json', import.meta.url),
  records: recorded,
  shipped: FLEET_TASKS,
  print(hash, task) {
    const { name: _, description: __, ...rest } = task;
    const episode = new FleetEpisode(task, FINGERPRINT_SEED);
    // A replica starts in the seconds that the task says: the costs of a change of weights concern `llmserve` alone.
    const profiles = episode.profiles.map(
      ({ reloadSeconds: _, hostCheckpoints: __, fit: ___, ...profile }) => profile,
    );
    hash.update(JSON.stringify([rest, profiles]));
    const { inputTokens, outputTokens, classes, startTicks, thinkTicks } = episode.requests;
    for (const column of [inputTokens, outputTokens, classes, startTicks, thinkTicks]) hash.update(column);
    printPlay(hash, episode, PLAYED);
  },
  tuned: ({ rule }) => rule,
  bound: (task, seed) => fleetReturnBound(task, drawFleetRequests(task, seed)),
  boundedSeeds: 5,
  unrecorded: 1,
});

/** Requests in flight a replica that `hpa` aims at on tasks without a record: a choice. */
const IN_FLIGHT_TARGET = 40;

/**
 * The autoscaler on requests that wait or run: the default that scores are held against.
 * @param target requests a replica. Default: the best in training on the task that is played, by its record
 */
export function hpaInFlight(target?: number): FleetController {
  const policy = podAutoscaler((metrics: FleetObservation) => ({
    most: metrics.server.max_replicas,
    total: metrics.num_requests_running + metrics.num_requests_waiting,
    targetPerReplica: target ?? fleetReturns.reference(metrics.task_id)?.inFlightTarget ?? IN_FLIGHT_TARGET,
  }));
  return scalingController(target === undefined ? 'hpa' : `hpa:${target}`, policy);
}

/** The rule, as a grader and planners play it. */
export function ruleController(parameters?: Partial<RateRuleParameters>): FleetController {
  return scalingController('rule', rateRule(parameters));
}

/** Returns that an episode is held against, with those of the rows of a record. */
export type FleetAnchors = WindowAnchors & FleetSeedReturns;

/**
 * The recorded returns of (task, seed). Where there are none, the autoscaler and the rule are played, and the clairvoyant
 * is taken to come as far from the better of them towards the bound as it does over the recorded seeds of the task; for
 * a task of which nothing is recorded, to the bound.
 */
export function fleetAnchors(task: FleetTask, seed: number, requests: FleetRequests): FleetAnchors {
  const bound = fleetReturnBound(task, requests);
  const recorded = fleetReturns.returns(task, seed);
  if (recorded !== undefined) return { ...recorded, bound, estimated: false };
  const played = (controller: FleetController) => controlledReturn(task, seed, requests, controller);
  const standard = played(hpaInFlight());
  const rule = played(ruleController(fleetReturns.reference(task.id)?.rule));
  const best = Math.max(standard, rule);
  return {
    ...{ default: standard, rule, bound, estimated: true },
    // Rounding must not lift it above the bound.
    clairvoyant: Math.min(bound, best + fleetReturns.foresight(task.id) * (bound - best)),
  };
}

/** Return of an episode that a controller plays. */
export function controlledReturn(...episode: Parameters<typeof controlledTotals>): number {
  return controlledTotals(...episode).reward;
}

/** Totals of an episode that a controller plays, with masked knobs at their defaults. */
export function controlledTotals(
  task: FleetTask,
  seed: number,
  requests: FleetRequests,
  controller: FleetController,
) {
  const episode = new FleetEpisode(task, seed, requests);
  controller.reset();
  while (!episode.done) {
    const { window: stepIndex, action: previousAction } = episode;
    const action = controller.act({ observation: episode.observation(), previousAction, stepIndex });
    episode.step(holdMaskedKnobs(task, action));
  }
  return episode.totals;
}

/** Most sequences and tokens of an iteration that an action can set. */
const MOST_SEQUENCES = fleetActionSchema.shape.max_num_active_seqs.maxValue ?? Number.POSITIVE_INFINITY;
const MOST_TOKENS = fleetActionSchema.shape.max_num_batched_tokens.maxValue ?? Number.POSITIVE_INFINITY;

/** Compute over the reading of weights for which the bound is derived; the tightest is taken. */
const COMPUTE_TO_READ = [0.5, 1, 2, Number.POSITIVE_INFINITY];

/**
 * A return that no sequence of actions can exceed on these requests: each request earns its price less the bill of the
 * least GPU time that any schedule needs for it, or is not served.
 *
 * GPU time of a request. With T tokens, D decoding sequences, C context tokens and A pairs of prefill attention, the law
 * gives an iteration at least
 *
 *     base + softmax(read, perToken T) + perSequence D + perContext C + perPair A,  softmax(x, y) = (x^4 + y^4)^(1/4).
 *
 * For weights a, b with a^(4/3) + b^(4/3) = 1, softmax(x, y) >= a x + b y (Hoelder). D is at most 512, so base + a read is
 * at least D / 512 of itself. What remains is a sum over requests: the tokens of the prompt that no other request can have
 * left in a cache, the tokens of the answer after the first, and the context and attention of both. The least coefficient
 * stands wherever the law has several. A request cannot cost less, in whatever batch and on whatever replica it runs.
 *
 * Bill of a replica. It is busy only while it is billed, but for the end of the iteration in which it stops. A cold start,
 * billed too, is longer than an iteration, so that this is made up for by each replica but those that are there at the
 * start; their last iterations are given to the schedule. Where a cold start is shorter, the bound is all revenue.
 */
export function fleetReturnBound(task: FleetTask, requests: FleetRequests): number {
  const { inputTokens, outputTokens } = requests;
  const prices = requestPrices(requests, task);
  const cached = cacheableTokens(requests);
  let bound = 0;
  for (const price of prices) bound += price;
  const pools = fleetPools(task);
  const { replicas, second_replicas } = task.defaultAction;
  const longestPrompt = inputTokens.reduce((most, each) => Math.max(most, each), 0);
  let given = 0;
  for (const [pool, { profile, coldStartSeconds }] of pools.entries()) {
    const longest = longestIteration(profile, longestPrompt);
    if (coldStartSeconds[0] < longest) return bound / task.referenceUsd;
    given += [replicas, second_replicas][pool] * longest * usdPerSecond(profile);
  }
  for (const ratio of COMPUTE_TO_READ) {
    const costs = pools.map(({ profile }) => requestUsd(profile, ratio));
    let usd = given;
    for (let i = 0; i < prices.length; i++) {
      const least = Math.min(...costs.map((cost) => cost(inputTokens[i], cached[i], outputTokens[i])));
      usd += Math.max(0, prices[i] - least);
    }
    bound = Math.min(bound, usd);
  }
  return bound / task.referenceUsd;
}

function usdPerSecond({ gpu }: EngineProfile): number {
  return (gpu.count * gpu.usdPerHour) / 3600;
}

/** Least USD of a request on a replica, by prompt, cached part of it and output, for one choice of the weights a and b. */
function requestUsd(
  profile: EngineProfile,
  computeToRead: number,
): (input: number, cached: number, output: number) => number {
  const { law } = weightVariant(profile, 'FP16');
  const cube = portableMath.cube(computeToRead);
  const norm = portableMath.pow(1 + cube * computeToRead, 0.75);
  const readWeight = Number.isFinite(computeToRead) ? 1 / norm : 0;
  const computeWeight = Number.isFinite(computeToRead) ? cube / norm : 1;
  const factor = Math.min(1, ...(law.tokenFactors ?? []).map(([, each]) => each));
  // Launches that bind hide the compute of tokens and sequences, as reading the weights does.
  const hidden = law.launchBound === true;
  const shared = hidden
    ? readWeight * factor * (law.baseUs + law.weightReadUs)
    : law.baseUs + readWeight * factor * law.weightReadUs;
  const token = computeWeight * factor * law.perTokenUs;
  const sequence = (hidden ? computeWeight * factor : 1) * law.perDecodeSequenceUs + shared / MOST_SEQUENCES;
  const context = leastContextUs(profile);
  const pair = law.perPrefillAttentionNs / 1000;
  const usdPerUs = usdPerSecond(profile) / 1e6;
  return (input, cached, output) => {
    const steps = output - 1;
    const us =
      token * (input - cached + steps) +
      sequence * steps +
      context * steps * (input + steps / 2) +
      (pair * (input * input - cached * cached)) / 2;
    return us * usdPerUs;
  };
}

/** Least time of a context token of a decoding sequence, us. */
function leastContextUs(profile: EngineProfile): number {
  const { law } = weightVariant(profile, 'FP16');
  const factor = Math.min(1, ...(law.sequenceFactors ?? []).map(([, each]) => each));
  const ns = Math.min(
    law.perContextTokenNs * factor,
    law.manySequences?.perContextTokenNs ?? Number.POSITIVE_INFINITY,
    law.perContextTokenBesidePrefillNs ?? Number.POSITIVE_INFINITY,
  );
  return ns / 1000;
}

/** No iteration takes longer, s. */
function longestIteration(profile: EngineProfile, longestPrompt: number): number {
  const { law } = weightVariant(profile, 'FP16');
  const most = (points: typeof law.tokenFactors) =>
    Math.max(1, ...(points ?? []).map(([, factor]) => factor));
  const contexts = [
    law.perContextTokenNs * most(law.sequenceFactors),
    law.manySequences?.perContextTokenNs ?? 0,
    law.perContextTokenBesidePrefillNs ?? 0,
  ];
  const us =
    law.baseUs +
    (law.prefillLaunchUs ?? 0) +
    most(law.tokenFactors) *
      (law.weightReadUs + (law.experts?.readUs ?? 0) + law.perTokenUs * (MOST_TOKENS + MOST_SEQUENCES)) +
    law.perDecodeSequenceUs * MOST_SEQUENCES +
    (Math.max(...contexts) / 1000) * kvPoolBlocks(profile, 'FP16', false, 1) * BLOCK_TOKENS +
    (law.perPrefillAttentionNs / 1000) * MOST_TOKENS * longestPrompt;
  return us / 1e6;
}

/** A chunk that more than one conversation has. */
const SHARED = -1;

/**
 * Tokens of each prompt that another request can have left in a cache: those of its conversation's earlier turns, and text
 * that other conversations have too. The last token of a prompt is always computed.
 */
function cacheableTokens({
  inputTokens,
  outputTokens,
  starts,
  nextTurn,
  texts,
}: FleetRequests): Float64Array {
  const cached = new Float64Array(inputTokens.length);
  if (texts === null) return cached;
  const none = { ids: [], ends: [], chunkTokens: 0 };
  const prefixOf = (id: number) => texts.prefixOf(id, inputTokens[id], outputTokens[id]) ?? none;
  /** The conversation that has a chunk, by its first request. */
  const owners = new Map<number, number>();
  for (const start of starts) {
    for (let id = start; id !== NO_REQUEST; id = nextTurn[id]) {
      const { ids } = prefixOf(id);
      for (let at = 0; at < ids.length; at++) {
        const owner = owners.get(ids[at]);
        if (owner === undefined) owners.set(ids[at], start);
        else if (owner !== start) owners.set(ids[at], SHARED);
      }
    }
  }
  for (const start of starts) {
    const earlier = new Set<number>();
    for (let id = start; id !== NO_REQUEST; id = nextTurn[id]) {
      const { ids, ends, chunkTokens } = prefixOf(id);
      let known = 0;
      for (; known < ids.length; known++) {
        if (owners.get(ids[known]) !== SHARED && !earlier.has(ids[known])) break;
      }
      const end = known === 0 ? 0 : ends === undefined ? known * chunkTokens : ends[known - 1];
      cached[id] = Math.min(end, inputTokens[id] - 1);
      for (let at = 0; at < ids.length; at++) earlier.add(ids[at]);
    }
  }
  return cached;
}
