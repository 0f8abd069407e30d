import { createHmac, randomBytes } from 'node:crypto';
import { type FleetTask, firstSeeds, fleet } from '@servegym/environments';
import { findProfile } from '@servegym/profiles';
import { type FleetFault, RandomStream } from '@servegym/simulator';
import anchors from './anchors.json' with { type: 'json' };
import { REFERENCES, type ReferenceName } from './references.ts';
import type { Worth } from './score.ts';
import data from './suites.json' with { type: 'json' };
import type { Trial, TrialRequests } from './trial.ts';

export type SuiteName = keyof typeof data.suites;
export const SUITE_NAMES = Object.keys(data.suites) as SuiteName[];

/** Training and validation traces are given; test traces are drawn from a secret. */
export type Split = 'train' | 'validation' | 'test';

/** A trace of a suite: what it is called, and what is drawn. */
export interface SuiteTrace {
  /** Traffic, GPU, load and fault. */
  readonly name: string;
  readonly seed: number;
}

interface SuiteData {
  readonly loads?: typeof data.loads;
  readonly fleet?: Partial<typeof data.fleet>;
  /** Mean error of predicted lengths of answers, as a share; without it, nobody predicts them. */
  readonly predictionError?: number;
  /** Rates of the suite's own, chosen where its functions matter. Default: those of the GPU. */
  readonly requestsPerSecond?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Whether the policy says how many replicas there are. */
  readonly scales?: boolean;
  /** How the rate changes. Default: not at all. */
  readonly rate?: Omit<FleetTask['streams'][number]['rate'], 'perSecond'>;
}

const LEAST_TEST_SEED = 2 ** 52;

/** A secret for test traces, as seasons have it: 256 random bits. */
export function drawSecret(): string {
  return randomBytes(32).toString('hex');
}

/** The traces of a split. Those of `test` need a secret: 52 bits of its HMAC are the seed of each. */
export function tracesOf(suite: SuiteName, split: Split, secret: string): SuiteTrace[] {
  const { train, validation } = data.suites[suite];
  if (split !== 'test') {
    const names = split === 'train' ? train : validation;
    const seeds = firstSeeds(split, names.length);
    return names.map((name, i) => ({ name, seed: seeds[i] }));
  }
  return train.map((_, i) => {
    const bits = createHmac('sha256', secret)
      .update(JSON.stringify([suite, i]))
      .digest()
      .readBigUInt64BE();
    const seed = LEAST_TEST_SEED + Number(bits % BigInt(LEAST_TEST_SEED));
    const draws = new RandomStream(seed, 'suite trace');
    const pick = <T>(list: readonly T[]) => list[draws.integer(0, list.length - 1)];
    // Traffic and GPU as in training; load and fault as they are drawn.
    const [traffic, gpu] = train[i].split(' ');
    return {
      name: [traffic, gpu, pick(Object.keys(data.loads)), pick(Object.keys(data.faults))].join(' '),
      seed,
    };
  });
}

/** Policies of which a suite's score is 0 and 1. */
export function referencesOf(suite: SuiteName) {
  return data.suites[suite].references as { readonly default: ReferenceName; readonly best: ReferenceName };
}

/** All of our policies that a suite is about. */
export function suitePolicies(suite: SuiteName): readonly string[] {
  const { default: standard, best } = referencesOf(suite);
  return [standard, ...data.suites[suite].others, best];
}

/** What 0 and 1 of a suite's score are, in words. */
export function titlesOf(suite: SuiteName) {
  const { default: standard, best } = referencesOf(suite);
  return { default: REFERENCES[standard].title, best: REFERENCES[best].title };
}

/** Values of the default and of the best known on a given trace, as `benchmarks/run.ts policies` records them. */
export function recordedValues(suite: SuiteName, split: Split, name: string) {
  const known: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>> = anchors;
  const [standard, best] = known[`${suite} ${split}`]?.[name] ?? [];
  return standard === undefined ? undefined : { default: standard, best };
}

export const WORTH: Worth = { objectives: data.objectives, prices: data.prices };

/** Replicas that the rates of the data are for. */
const RATED_REPLICAS = data.fleet.replicas;

export function drawTrial(
  suiteName: SuiteName,
  { name, seed }: SuiteTrace,
  count: number = data.suites[suiteName].requests,
): Trial {
  const [traffic, gpuName, load, fault] = name.split(' ') as [
    keyof typeof data.traffic,
    keyof typeof data.gpus,
    keyof typeof data.loads,
    keyof typeof data.faults,
  ];
  const suite = data.suites[suiteName] as SuiteData;
  const gpu = data.gpus[gpuName];
  const { replicas, prefillReplicas, maxNumBatchedTokens, maxNumSeqs, patienceSeconds, ...fleetData } = {
    ...data.fleet,
    ...suite.fleet,
  };
  const { metricsIntervalMs } = fleetData;
  const rates = suite.requestsPerSecond?.[gpuName] ?? gpu.requestsPerSecond;
  const perSecond = (rates[traffic] * (suite.loads ?? data.loads)[load] * replicas) / RATED_REPLICAS;
  const seconds = Math.ceil(count / perSecond);
  const { rate = { peakToTrough: 1 } } = suite;
  const streams = Object.entries<number>(data.traffic[traffic]).map(([name, share]) => {
    const stream = data.streams[name as keyof typeof data.streams];
    const turns = 'turns' in stream ? stream.turns.mean : 1;
    return { ...stream, name, rate: { ...rate, perSecond: (share * perSecond) / turns } };
  }) as unknown as FleetTask['streams'];
  const requests = fleet.drawRequests({ streams, windows: 1, windowSeconds: seconds } as FleetTask, seed);
  const { ids, ends, offsets } = requests.texts as unknown as TrialRequests['texts'];
  const coldStartSeconds = fleetData.coldStartSeconds as [number, number];
  return {
    requests: {
      ...requests,
      texts: { ids, ends, offsets },
      predicted: predictions(requests.outputTokens, seed, suite.predictionError),
    },
    pools: [{ profile: findProfile(gpu.profile), coldStartSeconds }],
    settings: {
      ...{ replicas: [replicas], prefillReplicas, maxNumBatchedTokens, maxNumSeqs },
      ...{ routing: { queue: 0, cache: 0, prefix: 0 }, admissionSeconds: Number.POSITIVE_INFINITY },
    },
    ...{ maxReplicas: replicas, metricsIntervalMs, patienceSeconds, seed: seed % 2 ** 32 },
    faults: data.faults[fault].map(({ from, until, ...each }) => ({
      ...(each as Pick<FleetFault, 'kind' | 'replica' | 'factor'>),
      ...{ fromS: from * seconds, untilS: until * seconds },
    })),
    ...(suite.scales && {
      task: {
        ...fleet.choose({ task_id: 'diurnal' }),
        ...{ id: suiteName, streams, metricsIntervalMs, coldStartSeconds, maxReplicas: replicas },
        ...{ profile: gpu.profile, objectives: data.objectives, prices: data.prices },
        windows: Math.ceil((seconds + patienceSeconds / 5) / WINDOW_SECONDS),
        windowSeconds: WINDOW_SECONDS,
        defaultAction: {
          ...fleet.choose({ task_id: 'diurnal' }).defaultAction,
          ...{ replicas: replicas / 2, max_num_batched_tokens: maxNumBatchedTokens },
          ...{ max_num_active_seqs: maxNumSeqs, admission_seconds: 600 },
        },
      } as FleetTask,
    }),
  };
}

/** Time between two decisions about replicas, s: that of the fleet tasks. */
const WINDOW_SECONDS = 30;

/** Predicted lengths of answers: the true ones times a log-normal error of this mean. */
function predictions(outputs: Int32Array, seed: number, error?: number): TrialRequests['predicted'] {
  if (error === undefined) return undefined;
  const draws = new RandomStream(seed, 'predicted outputs');
  // The mean of |exp(sigma z) - 1| is about sigma times the mean of |z|.
  const sigma = error / Math.sqrt(2 / Math.PI);
  const tokens = outputs.map((length) => Math.max(1, Math.round(length * Math.exp(sigma * draws.normal()))));
  return { tokens, error };
}
