import { createHmac, randomBytes } from 'node:crypto';
import { type FleetTask, firstSeeds, fleet } from '@servegym/environments';
import { findProfile } from '@servegym/profiles';
import { type FleetFault, RandomStream } from '@servegym/simulator';
import { REFERENCES, type ReferenceName } from './references.ts';
import type { Worth } from './score.ts';
import data from './suites.json' with { type: 'json' };
import type { Trial, TrialRequests } from './trial.ts';

export type SuiteName = keyof typeof data.suites;
export const SUITE_NAMES = Object.keys(data.suites) as SuiteName[];

/** Training and validation traces are given; test traces are drawn from a secret. */
export const SPLITS = ['train', 'validation', 'test'] as const;
export type Split = (typeof SPLITS)[number];

/** A trace of a suite: what it is called, and what is drawn. */
export interface SuiteTrace {
  /** Traffic, GPU, load and fault. */
  readonly name: string;
  readonly seed: number;
}

/** What a suite may have of its own. */
interface SuiteData {
  readonly loads?: typeof data.loads;
  readonly prefillReplicas?: number;
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

/** What 0 and 1 of a suite's score are, in words. */
export function titlesOf(suite: SuiteName) {
  const { default: standard, best } = referencesOf(suite);
  return { default: REFERENCES[standard].title, best: REFERENCES[best].title };
}

export const WORTH: Worth = { objectives: data.objectives, prices: data.prices };

/** Draws a trace, and the fleet that serves it. */
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
  const perSecond = gpu.requestsPerSecond[traffic] * (suite.loads ?? data.loads)[load];
  const seconds = Math.ceil(count / perSecond);
  const streams = Object.entries<number>(data.traffic[traffic]).map(([name, share]) => {
    const stream = data.streams[name as keyof typeof data.streams];
    const turns = 'turns' in stream ? stream.turns.mean : 1;
    return { ...stream, name, rate: { perSecond: (share * perSecond) / turns, peakToTrough: 1 } };
  });
  const requests = fleet.drawRequests(
    { streams, windows: 1, windowSeconds: seconds } as unknown as FleetTask,
    seed,
  );
  const { replicas, maxNumBatchedTokens, maxNumSeqs, metricsIntervalMs, patienceSeconds } = data.fleet;
  const { ids, ends, offsets } = requests.texts as unknown as TrialRequests['texts'];
  return {
    requests: { ...requests, texts: { ids, ends, offsets } },
    pools: [
      {
        profile: findProfile(gpu.profile),
        coldStartSeconds: data.fleet.coldStartSeconds as [number, number],
      },
    ],
    settings: {
      ...{
        replicas: [replicas],
        prefillReplicas: suite.prefillReplicas ?? 0,
        maxNumBatchedTokens,
        maxNumSeqs,
      },
      ...{ routing: { queue: 0, cache: 0, prefix: 0 }, admissionSeconds: Number.POSITIVE_INFINITY },
    },
    ...{ maxReplicas: replicas, metricsIntervalMs, patienceSeconds, seed: seed % 2 ** 32 },
    faults: data.faults[fault].map(({ from, until, ...each }) => ({
      ...(each as Pick<FleetFault, 'kind' | 'replica' | 'factor'>),
      ...{ fromS: from * seconds, untilS: until * seconds },
    })),
  };
}
