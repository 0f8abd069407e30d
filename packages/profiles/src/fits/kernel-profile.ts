import {
  type EngineProfile,
  type IterationLaw,
  IterationTimer,
  kvPoolBlocks,
  TICKS_PER_US,
} from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { VLLM_V1 } from '../data/engine-constants.ts';
import type { ServedModel } from '../data/served-model.ts';
import {
  type AttentionTime,
  type KernelTables,
  LAYER_KERNELS,
  MODEL_KERNELS,
  SEQUENCE_KERNELS,
  timeAt,
} from '../tables/kernel-tables.ts';
import { BLOCK_TOKENS, blankProfile, type CalibrationOptions } from './blank-profile.ts';
import { rooflineLaw } from './estimated-profile.ts';
import {
  checkRows,
  fitErrors,
  fitLeavingOut,
  hundredths,
  type LawFit,
  type LawPrior,
  likelySpreads,
  type Observation,
  roundLaw,
} from './fit-law.ts';
import { besideQuantized } from './quantized-variants.ts';

/** CPU work between the kernels of two iterations, of 0.4 to 1.2 ms measured with vLLM V1. */
const ENGINE_OVERHEAD_US = 800;

/** Iterations that serving is made of, each kind with its share in the fit: most iterations only decode. */
const SHARES = { decode: 400, prefill: 120, mixed: 120 };
// Iterations that servers run: not more sequences, shorter contexts or longer prompts than these.
const MOST_DECODES = 128;
const LEAST_CONTEXT = 256;
const LONGEST_PROMPT = 8192;
const LONGEST_CACHED = 4096;
const LEAST_ITERATIONS = 20;
const MOST_TOKENS = 2048 + MOST_DECODES;

export interface KernelCalibration {
  readonly profile: EngineProfile;
  readonly determined: LawFit['determined'];
  /** Mean relative error by kind of iteration, percent, of the iterations left out of a fit. */
  readonly kinds: Readonly<
    Record<keyof typeof SHARES, { readonly rows: number; readonly heldOutMeanErrorPercent: number }>
  >;
}

interface Iteration extends Observation {
  readonly kind: keyof typeof SHARES;
}

/**
 * Makes a profile of one GPU from kernel times: the time of an iteration is the sum of its kernels, and 0.8 ms of CPU
 * work between two. The law is fitted to the iterations that the attention table has.
 */
export function calibrateKernels(tables: KernelTables, options: CalibrationOptions): KernelCalibration {
  const { gpu, model } = options;
  // Kernel times show no launches.
  const roofline = rooflineLaw(gpu, model, 1, { ...VLLM_V1, prefillPerLayerUs: 0 });
  const prior: LawPrior = {
    law: { ...roofline, perContextTokenBesidePrefillNs: 2 * roofline.perContextTokenNs },
    spread: likelySpreads('kernels'),
  };
  const blank = blankProfile({
    gpu,
    model,
    count: 1,
    engine: { name: 'vLLM', version: 'V1', asyncScheduling: true },
    law: prior.law,
    requestOverheadMs: VLLM_V1.requestOverheadMs,
    memoryOverheadGiB: options.memoryOverheadGiB,
    status: 'measured',
    source: options.source,
  });
  const poolTokens = kvPoolBlocks(blank, 'FP16', false, 1) * BLOCK_TOKENS;
  const iterations = iterationsOf(tables, model, poolTokens);
  checkRows(iterations.length, LEAST_ITERATIONS, `attention times of iterations that fit ${gpu.name}`);
  // Every second iteration is left out, and then the others.
  const { law, determined, rows } = fitLeavingOut(iterations, prior, (_, i) => i % 2);
  const fitted: IterationLaw = roundLaw({ ...law, baseUs: law.baseUs + ENGINE_OVERHEAD_US });
  const measured: EngineProfile = { ...blank, weights: { FP16: { ...blank.weights.FP16!, law: fitted } } };
  const errorsOf = (kind: keyof typeof SHARES) => {
    const own = rows.filter(({ observation }) => observation.kind === kind).map(({ heldOut }) => heldOut);
    return { rows: own.length, heldOutMeanErrorPercent: hundredths(mean(own)) };
  };
  return {
    profile: {
      ...measured,
      fit: fitErrors(options.command, rows),
      validity: { batch: [1, MOST_DECODES], contextTokens: [1, LONGEST_PROMPT] },
      weights: besideQuantized(measured, gpu, model),
    },
    determined,
    kinds: { decode: errorsOf('decode'), prefill: errorsOf('prefill'), mixed: errorsOf('mixed') },
  };
}

/** The iterations that the attention table has and a server with this pool could run, timed by their kernels. */
function iterationsOf(tables: KernelTables, model: ServedModel, poolTokens: number): Iteration[] {
  const rows = tables.attention.filter(
    ({ prefillChunk, kvPrefill, decodes, kvDecode }) =>
      prefillChunk + decodes > 0 &&
      prefillChunk + decodes <= MOST_TOKENS &&
      prefillChunk + kvPrefill <= LONGEST_PROMPT &&
      (prefillChunk === 0 || kvPrefill <= LONGEST_CACHED) &&
      decodes <= MOST_DECODES &&
      (decodes === 0 || kvDecode >= LEAST_CONTEXT) &&
      decodes * kvDecode <= poolTokens,
  );
  const kinds = rows.map(kindOf);
  const rowsOfKind = { decode: 0, prefill: 0, mixed: 0 };
  for (const kind of kinds) rowsOfKind[kind] += 1;
  const timer = timerMemo();
  return rows.map((row, i) => {
    const kind = kinds[i];
    return {
      kind,
      weight: SHARES[kind] / rowsOfKind[kind],
      measuredS: kernelsUs(tables, model, row) / 1e6,
      predictS: (law: IterationLaw) => iterationUs(timer(law), row) / 1e6,
    };
  });
}

function kindOf({ prefillChunk, decodes }: AttentionTime): keyof typeof SHARES {
  if (prefillChunk === 0) return 'decode';
  return decodes === 0 ? 'prefill' : 'mixed';
}

function kernelsUs(tables: KernelTables, model: ServedModel, row: AttentionTime): number {
  const tokens = row.prefillChunk + row.decodes;
  const sequences = row.decodes + (row.prefillChunk > 0 ? 1 : 0);
  const total = (names: readonly string[], of: KernelTables['dense'], size: number) =>
    names.reduce((sum, name) => sum + timeAt(of.get(name)!, size), 0);
  return (
    total(MODEL_KERNELS, tables.dense, tokens) +
    model.layers * (total(LAYER_KERNELS, tables.dense, tokens) + row.us) +
    total(SEQUENCE_KERNELS, tables.perSequence, sequences)
  );
}

function iterationUs(
  timer: IterationTimer,
  { prefillChunk, kvPrefill, decodes, kvDecode }: AttentionTime,
): number {
  const attention = prefillChunk * (kvPrefill + prefillChunk / 2);
  const fixed = timer.fixedTicks(prefillChunk + decodes, decodes, attention);
  return (fixed + timer.contextTicks(decodes, prefillChunk) * decodes * kvDecode) / TICKS_PER_US;
}

/** Iterations are predicted law by law, so that one timer at a time serves them all. */
function timerMemo(): (law: IterationLaw) => IterationTimer {
  let last: { law: IterationLaw; timer: IterationTimer } | undefined;
  return (law) => {
    if (last?.law !== law) last = { law, timer: new IterationTimer(law) };
    return last.timer;
  };
}
