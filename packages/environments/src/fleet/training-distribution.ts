import { findProfile } from '@servegym/profiles';
import { portableMath, RandomStream, weightVariant } from '@servegym/simulator';
import { trainingProfileNames } from '../training-profiles.ts';
import { FLEET_TASKS, type FleetTask, fleetProfileFits, type RequestStream } from './fleet-task.ts';
import { chooseFleetTask } from './scenario.ts';

/**
 * What an autoscaler of any fleet is trained on, as `docs/fleet.md` has it: a quarter of the episodes each the task
 * `flash_crowds`, the public traffic of the training split, the tasks with sessions of agents, and drawn fleets. Ranges are
 * choices; those of two numbers are drawn by their logarithm.
 */
const TRAINING_DISTRIBUTION = {
  flashCrowds: [{ task_id: 'flash_crowds', rate: [1, 1] }],
  /** Public traffic, the task whose fleet and prices it is played with, and how many times as fast. */
  public: [
    { traffic: 'azure-conversation-2023', task_id: 'flash_crowds', rate: [2, 8] },
    { traffic: 'azure-code-2023', task_id: 'coding_agents', rate: [4, 12] },
    { traffic: 'mooncake-conversation', task_id: 'coding_agents', rate: [1, 2.5] },
  ],
  agents: [
    { task_id: 'agents', rate: [0.5, 1.5] },
    { task_id: 'coding_agents', rate: [0.5, 1.5] },
  ],
  /** Replicas that the mean demand takes. */
  replicas: [1.2, 8],
  /** Most requests a second, so that an episode is soon played. */
  mostArrivals: 4,
  /** Lengths in tokens: medians and spreads. */
  prompt: [100, 9000],
  output: [20, 600],
  sigma: [0.3, 1],
  /** Rate at the busiest hour over that at the quietest, and surges: one kind in two streams of three. */
  peakToTrough: [1, 6],
  surgeEverySeconds: [300, 3000],
  surgeFactor: [1.5, 5],
  surgeSeconds: [20, 900],
  /** Shares of the fleets with sessions, with batch work and with best-effort work beside interactive requests. */
  sessions: 0.25,
  beside: 0.5,
  /** Work beside, over the interactive requests. */
  besideShare: [0.1, 0.8],
  /** TPOT objective over an empty iteration, and TTFT objective over the prefill of the median prompt. */
  tpot: [2, 7],
  ttft: [3, 40],
  leastTtftMs: 200,
  /** Seconds of the fastest cold start, and the slowest over it. */
  coldStart: [20, 100],
  coldStartSpread: [1.2, 5],
  /** Price of what a replica serves inside the objectives, over that of the replica. */
  worth: [2, 8],
  /** Price of an output token over that of a prompt token. */
  outputPrice: [1, 6],
} as const;

/** Names of the profiles whose fleets are drawn, once they are asked for: all profiles are looked at. */
let known: readonly string[] | undefined;

/** A fleet drawn by its seed, with its requests, objectives and prices, for an episode of so many windows. */
export function drawTrainingFleet(seed: number, windows: number): FleetTask {
  const draws = new RandomStream(seed, 'training fleet');
  const factor = (range: readonly [number, number]) => draws.logUniform(...range);
  const d = TRAINING_DISTRIBUTION;
  const shipped = [d.flashCrowds, d.public, d.agents][draws.integer(0, 3)];
  if (shipped !== undefined) {
    const { rate, ...scenario } = shipped[draws.integer(0, shipped.length - 1)]!;
    return { ...chooseFleetTask({ ...scenario, rate_scale: factor(rate) }), windows };
  }
  known ??= trainingProfileNames((profile) => fleetProfileFits(profile, { streams: [] }));
  const profile = findProfile(known[draws.integer(0, known.length - 1)]!);
  const { law } = weightVariant(profile, 'FP16');
  const emptyMs = (law.baseUs + law.weightReadUs) / 1000;
  const sigma = factor(d.sigma);
  const [tpotMs, wanted] = [emptyMs * factor(d.tpot), factor(d.replicas)];
  let [prompt, output] = [factor(d.prompt), factor(d.output)];
  /** Requests a second that a replica serves with tokens in time: the lengths are log-normal, their means exp(sigma^2 / 2) times the medians. */
  const served = () => {
    const longer = portableMath.exp(sigma ** 2 / 2);
    const context = longer * (prompt + output / 2);
    const token = law.perDecodeSequenceUs + (law.perContextTokenNs * context) / 1000;
    return ((1 - emptyMs / tpotMs) * 1e6) / (longer * (prompt * law.perTokenUs + output * token));
  };
  const tooMany = Math.max(1, (served() * wanted) / d.mostArrivals);
  prompt = Math.min(d.prompt[1], prompt * tooMany);
  output = Math.min(d.output[1], output * tooMany);
  const perReplica = served();
  const rate = Math.min(d.mostArrivals, perReplica * wanted);
  const replicas = rate / perReplica;
  const ttftMs = Math.max(d.leastTtftMs, emptyMs + (prompt * law.perTokenUs * factor(d.ttft)) / 1000);
  const usdPerRequest = (profile.gpu.count * profile.gpu.usdPerHour * factor(d.worth)) / 3600 / perReplica;
  const dearer = factor(d.outputPrice);
  const usdPerMillionInput = (1e6 * usdPerRequest) / (prompt + dearer * output);
  const price = (share: number) => ({
    usdPerMillionInput: share * usdPerMillionInput,
    usdPerMillionOutput: share * dearer * usdPerMillionInput,
  });
  const surges = () => {
    if (draws.uniform() < 1 / 3) return [];
    const [factors, seconds] = [factor(d.surgeFactor), factor(d.surgeSeconds)];
    return [
      {
        everySeconds: factor(d.surgeEverySeconds),
        factor: [1 + (factors - 1) / 2, factors] as const,
        seconds: [seconds / 2, seconds] as const,
        rampSeconds: 5 + seconds / 10,
      },
    ];
  };
  const lengthsOf = (median: number, least: number, most: number) => ({
    ...{ median, sigma, min: Math.min(least, median), max: Math.max(median, most) },
  });
  const lengths = { prompt: lengthsOf(prompt, 16, 16_000), output: lengthsOf(output, 4, 2000) };
  const stream = (name: RequestStream['class'], perSecond: number): RequestStream => ({
    ...{ name, class: name, lengths },
    rate: { perSecond, peakToTrough: factor(d.peakToTrough), surges: surges() },
  });
  const sessions = draws.uniform() < d.sessions;
  const turns = 2 + 10 * draws.uniform();
  const interactive = stream('interactive', sessions ? rate / turns : rate);
  const streams: RequestStream[] = [
    sessions
      ? {
          ...interactive,
          turns: {
            mean: turns,
            added: { median: Math.max(16, prompt / 5), sigma: 0.8, min: 16, max: 8000 },
            thinkSeconds: { median: 6, sigma: 1, min: 1, max: 200 },
            maxPrompt: Math.min(30_000, Math.max(4 * prompt, 16_000)),
          },
        }
      : interactive,
  ];
  for (const name of ['batch', 'best_effort'] as const) {
    if (draws.uniform() < d.beside) streams.push(stream(name, rate * factor(d.besideShare)));
  }
  const fast = factor(d.coldStart);
  const [base] = Object.values(FLEET_TASKS);
  return {
    ...{ ...base!, id: 'any', windows, profile: profile.name, streams },
    coldStartSeconds: [fast, fast * factor(d.coldStartSpread)],
    objectives: { ...base!.objectives, interactive: { ttftMs, tpotMs } },
    prices: { interactive: price(1), batch: price(0.5), best_effort: price(0.25) },
    referenceUsd: 30 * rate * usdPerRequest,
    defaultAction: { ...base!.defaultAction, replicas: Math.max(1, Math.round(replicas)) },
  };
}
