import { atListPrice, findProfile } from '@servegym/profiles';
import { type EngineProfile, RandomStream } from '@servegym/simulator';
import { REQUEST_CLASSES } from '../tasks.ts';
import { trainingProfileNames } from '../training-profiles.ts';
import { scaledProfile } from './scaled-profile.ts';
import { longer, profileFits, type ServeScenario } from './scenario.ts';
import { type Phase, SERVE_TASKS, type ServeTask } from './serve-task.ts';
import { describeServer } from './server-description.ts';

/**
 * What policies of any server are trained on, as `docs/environments.md` has it in a table. Ranges are choices; those of two
 * numbers are drawn by their logarithm. The traffic of public traces is never drawn: it is there to test on.
 */
const TRAINING_DISTRIBUTION = {
  /** Shares of the episodes: a task as it is, and traffic that is drawn instead of a task's. The others change a task. */
  unchanged: 0.2,
  drawnTraffic: 0.45,
  /** Half of the servers have times of their own: of memory, of compute, of sequences, over those of the profile. */
  times: [0.5, 2.8],
  /** Changes of a task: arrivals, prompts, answers, shares of the classes. Half of the arrivals are also scaled to the server. */
  rate: [0.6, 1.8],
  prompts: [0.5, 2.2],
  outputs: [0.6, 1.6],
  shares: [0.4, 2.5],
  /** Drawn traffic: kinds of phases, load at FP16 over what the server can do, lengths in tokens, spread of windows. */
  phases: 3,
  load: [0.1, 1.3],
  prompt: [100, 10_000],
  output: [20, 700],
  burstiness: [0.02, 0.6],
  /** Most arrivals a second, so that an episode is soon played. */
  mostArrivals: 60,
  /** SLOs and prices, over those of the task. */
  ttft: [0.5, 2],
  tpot: [0.7, 2.5],
  quality: [0.4, 2],
  memory: [0.6, 1.3],
  referenceCost: [0.5, 2],
} as const;

/**
 * Scenarios of what is never drawn: GPUs and models that `training-profiles.ts` does not list, and public traces. What
 * policies score on them is how well they carry over.
 */
export const HELD_OUT: Readonly<Record<string, ServeScenario>> = {
  L40S: { profile: 'l40s-48gb-llama-3-8b' },
  MI300X: { profile: 'mi300x-192gb-llama-3-8b' },
  'RTX 4090': { profile: 'rtx4090-24gb-llama-3-8b' },
  'Mistral 7B': { profile: 'a100-40gb-mistral-7b' },
  'Azure conversation': { traffic: 'azure-conversation-2023' },
  'Azure code': { traffic: 'azure-code-2023' },
  Mooncake: { traffic: 'mooncake-conversation' },
};

type Range = readonly [number, number];

const KNOWN = new Map<string, readonly string[]>();

/** Names of the profiles that a task may be trained on. */
export function trainingProfiles(task: ServeTask): readonly string[] {
  const names = KNOWN.get(task.id) ?? trainingProfileNames((profile) => profileFits(profile, task));
  KNOWN.set(task.id, names);
  return names;
}

/** One of these profiles: of a GPU drawn among those that they have, so that each is met as often. */
function drawProfile(names: readonly string[], of: <Item>(items: readonly Item[]) => Item): string {
  const gpuOf = (name: string) => findProfile(name).gpu.name;
  const gpu = of([...new Set(names.map(gpuOf))]);
  return of(names.filter((name) => gpuOf(name) === gpu));
}

interface TrainingEpisode {
  readonly task: ServeTask;
  readonly profile: EngineProfile;
}

/** A training episode of policies that run any server: drawn by its seed from `TRAINING_DISTRIBUTION`. */
export function drawTrainingEpisode(seed: number): TrainingEpisode {
  const draws = new RandomStream(seed, 'training task');
  const of = <Item>(items: readonly Item[]): Item => items[draws.integer(0, items.length - 1)]!;
  const factor = (range: Range) => draws.logUniform(...range);
  const d = TRAINING_DISTRIBUTION;
  const base = of(Object.values(SERVE_TASKS));
  // Policies learn what GPUs cost by today's prices.
  const own = { task: base, profile: atListPrice(findProfile(base.profile)) };
  if (draws.uniform() < d.unchanged) return own;
  const listed = atListPrice(findProfile(drawProfile(trainingProfiles(base), of)));
  const profile =
    draws.uniform() < 0.5
      ? listed
      : scaledProfile(listed, [factor(d.times), factor(d.times), factor(d.times)]);
  const { objectives, reward } = base;
  const [ttft, tpot] = [factor(d.ttft), factor(d.tpot)];
  const slower = <Objective extends ServeTask['objectives']['batch']>(objective: Objective) => ({
    ...objective,
    ttftMs: objective.ttftMs * ttft,
    tpotMs: objective.tpotMs * tpot,
  });
  const priced = {
    ...{ ...base, profile: listed.name },
    objectives: {
      interactive: slower(objectives.interactive),
      batch: slower(objectives.batch),
      best_effort: slower(objectives.best_effort),
    },
    reward: { ...reward, memory: Math.min(1 - reward.cost, reward.memory * factor(d.memory)) },
    referenceCostPer1k: base.referenceCostPer1k * factor(d.referenceCost),
  };
  const quality = factor(d.quality);
  const dearer = (phase: Phase) => ({ ...phase, qualityValue: phase.qualityValue * quality });
  if (draws.uniform() < d.drawnTraffic) {
    const kinds = Array.from({ length: draws.integer(1, d.phases) }, () => of(base.phases));
    const server = { task: priced, profile };
    return {
      profile,
      task: { ...priced, phases: kinds.map((phase) => drawnPhase(server, dearer(phase), factor)) },
    };
  }
  const toServer = draws.uniform() < 0.5 ? capacity({ task: priced, profile }) / capacity(own) : 1;
  const busiest = Math.max(...base.phases.map(({ arrivalsPerSecond }) => arrivalsPerSecond[1]));
  const rate = Math.min(d.mostArrivals / busiest, toServer * factor(d.rate));
  const [prompts, outputs] = [factor(d.prompts), factor(d.outputs)];
  const phases = base.phases.map((phase) => {
    const shares = REQUEST_CLASSES.map((kind) => (phase.traffic[kind]?.share ?? 0) * factor(d.shares));
    const total = shares.reduce((sum, each) => sum + each, 0);
    const traffic = REQUEST_CLASSES.flatMap((kind, i) => {
      const own = phase.traffic[kind];
      if (own === undefined) return [];
      const { prompt, output } = own;
      return [
        [
          kind,
          { share: shares[i]! / total, prompt: longer(prompt, prompts), output: longer(output, outputs) },
        ],
      ];
    });
    const [least, most] = phase.arrivalsPerSecond;
    return {
      ...dearer(phase),
      arrivalsPerSecond: [least * rate, most * rate] as const,
      traffic: Object.fromEntries(traffic) as Phase['traffic'],
    };
  });
  return { profile, task: { ...priced, phases } };
}

/** Sequences a second of 1,024 tokens in and 256 out that both GPUs of a task's server can serve at FP16. */
function capacity(server: TrainingEpisode): number {
  return 1 / requestSeconds(server, 1024, 256);
}

/** Seconds of the server that a request takes at FP16, with 64 sequences on each GPU. */
function requestSeconds({ task, profile }: TrainingEpisode, prompt: number, output: number): number {
  const { prefill_1k_ms, decode_64_ms } = describeServer(task, profile);
  return ((prompt * prefill_1k_ms) / 1024 + (output * decode_64_ms) / 64) / 1000 / 2;
}

/** A phase of a task with lengths, rate and spread drawn anew for the server. */
function drawnPhase(server: TrainingEpisode, phase: Phase, factor: (range: Range) => number): Phase {
  const d = TRAINING_DISTRIBUTION;
  const [prompt, output] = [factor(d.prompt), factor(d.output)];
  const lengths = {
    prompt: { median: prompt, sigma: 0.7, min: 16, max: 16_384 },
    output: { median: output, sigma: 0.7, min: 4, max: 2000 },
  };
  // The mean of a log-normal is exp(sigma^2 / 2) times its median.
  const rate = Math.min(
    d.mostArrivals,
    factor(d.load) / requestSeconds(server, 1.28 * prompt, 1.28 * output),
  );
  const traffic = Object.entries(phase.traffic).map(([kind, { share }]) => [kind, { share, ...lengths }]);
  return {
    ...phase,
    arrivalsPerSecond: [rate, rate],
    burstiness: factor(d.burstiness),
    traffic: Object.fromEntries(traffic) as Phase['traffic'],
  };
}
