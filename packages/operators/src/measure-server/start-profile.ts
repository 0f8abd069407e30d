import type { MeasuredLoad } from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import { kvBlockBytes } from '@servegym/simulator';

/** Limits and names of a running server, told by it or by its user. */
export interface ServerFacts {
  readonly model: string;
  readonly engine: EngineProfile['engine'];
  readonly maxModelLen: number;
  readonly maxNumSeqs: number;
  readonly maxNumBatchedTokens: number;
  readonly kvBlocks: number;
  readonly blockTokens: number;
}

const GIB = 2 ** 30;
/** A token of KV where the model is not known: of a model of about 8 billion parameters. */
const KV_BYTES = 128 * 1024;
/** Weights and activations where neither GPU nor model is known. They only have to leave room for the pool. */
const WEIGHT_GIB = 1;
const OVERHEAD_GIB = 0.1;
/** Restart of a server: process, weights, compilation. */
const RELOAD_SECONDS = 60;
/** Shares of the time between tokens of a single request, and prompt tokens whose attention costs what one token costs. */
const SHARE = { base: 0.4, weightRead: 0.6, sequence: 0.02, contextToken: 1e-5, prefillLaunch: 0.1 };
const ATTENTION_TOKENS = 20_000;
const LEAST_MS = 0.01;

/** The profile with a KV pool of so many blocks: what activations take gives or yields the rest. */
export function withKvBlocks(profile: EngineProfile, { kvBlocks, blockTokens }: ServerFacts): EngineProfile {
  const { gpu, memory, weights } = profile;
  const weightGiB = Math.max(...Object.values(weights).map((variant) => variant.weightGiB));
  const poolGiB =
    ((kvBlocks + 0.5) * kvBlockBytes({ ...profile, memory: { ...memory, blockTokens } })) / GIB / gpu.count;
  const rest = gpu.memoryGiB * memory.utilization - weightGiB - poolGiB;
  if (rest >= 0) {
    return { ...profile, memory: { utilization: memory.utilization, overheadGiB: rest, blockTokens } };
  }
  const memoryGiB = Math.max(1, weightGiB + poolGiB + OVERHEAD_GIB);
  const overheadGiB = Math.max(0, memoryGiB - weightGiB - poolGiB);
  return {
    ...profile,
    gpu: { ...gpu, memoryGiB },
    memory: { utilization: 1, overheadGiB, blockTokens },
  };
}

/** A guess at a server from single requests: where the fit starts when neither GPU nor model is known. */
export function guessedProfile(single: MeasuredLoad, facts: ServerFacts): EngineProfile {
  const { requests } = single;
  const sorted = (values: readonly number[]) => values.toSorted((a, b) => a - b);
  const tpots = sorted(
    requests.map(({ e2eMs, ttftMs, outputTokens }) => (e2eMs - ttftMs) / Math.max(1, outputTokens - 1)),
  );
  const tpotMs = Math.max(LEAST_MS, tpots[Math.floor(tpots.length / 4)]);
  const byLength = requests.toSorted((a, b) => a.inputTokens - b.inputTokens);
  const half = Math.ceil(byLength.length / 2);
  const mean = (rows: typeof byLength, of: (row: (typeof byLength)[number]) => number) =>
    rows.reduce((sum, row) => sum + of(row), 0) / rows.length;
  const [short, long] = [byLength.slice(0, half), byLength.slice(-half)];
  const perTokenMs = Math.max(
    LEAST_MS / 10,
    (mean(long, (r) => r.ttftMs) - mean(short, (r) => r.ttftMs)) /
      Math.max(1, mean(long, (r) => r.inputTokens) - mean(short, (r) => r.inputTokens)),
  );
  const overheadMs = Math.max(
    LEAST_MS,
    sorted(byLength.map((r) => r.ttftMs - perTokenMs * r.inputTokens))[half >> 1] - tpotMs,
  );
  const source = `single requests to ${facts.model}`;
  return withKvBlocks(
    {
      name: `${facts.model.replace(/[^\w.]+/g, '-').toLowerCase()}-server`,
      gpu: { name: 'unknown', memoryGiB: 1, count: 1, usdPerHour: 0 },
      model: { name: facts.model, kvBytesPerToken: KV_BYTES },
      engine: facts.engine,
      status: 'estimated',
      source,
      fit: null,
      validity: { batch: [1, 1], contextTokens: [1, facts.maxModelLen] },
      memory: { utilization: 1, overheadGiB: OVERHEAD_GIB, blockTokens: facts.blockTokens },
      requestOverheadMs: overheadMs,
      reloadSeconds: RELOAD_SECONDS,
      weights: {
        FP16: {
          weightGiB: WEIGHT_GIB,
          law: {
            baseUs: 1000 * SHARE.base * tpotMs,
            weightReadUs: 1000 * SHARE.weightRead * tpotMs,
            perTokenUs: 1000 * perTokenMs,
            perDecodeSequenceUs: 1000 * SHARE.sequence * tpotMs,
            perContextTokenNs: 1e6 * SHARE.contextToken * tpotMs,
            prefillLaunchUs: 1000 * SHARE.prefillLaunch * tpotMs,
            perPrefillAttentionNs: (1e6 * perTokenMs) / ATTENTION_TOKENS,
          },
          status: 'estimated',
          source,
          quality: 1,
        },
      },
      speculation: null,
      transfer: { gigabytesPerSecond: 25, setupMs: 1 },
    },
    facts,
  );
}
