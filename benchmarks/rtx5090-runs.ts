/**
 * Runs of vLLM 0.22 on an RTX 5090 with static token budgets and with P-PAS (TimoSaemann/ppas-vllm, Apache-2.0), and profiles
 * of their models.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { estimatedProfile, findGpu, mapLaw, modelFromConfig } from '@servegym/profiles';
import {
  Engine,
  type EngineProfile,
  engineOptionsOf,
  kvPoolBlocks,
  msFromTicks,
  TICKS_PER_S,
} from '@servegym/simulator';
import { leastSquares } from '../packages/profiles/src/fits/least-squares.ts';
import configs from './rtx5090-models.json' with { type: 'json' };

/** A run of the measurements, as far as it is read. */
export interface Run {
  readonly file: string;
  readonly command: string;
  readonly phase_schedule: string;
  readonly configured_prompt_tokens: number;
  readonly configured_output_tokens: number;
  readonly seed: number;
  readonly num_requests: number;
  readonly config_name: string;
  readonly max_num_batched_tokens: number;
  readonly max_num_seqs: number;
  readonly avg_latency: number;
  readonly avg_ttft: number;
  readonly avg_tpot: number;
}

/** Seed whose static budgets the profiles are fitted to. */
export const FITTED_SEED = 0;
/** Distance of a coefficient from the estimate that is likely, as a logarithm. */
const LIKELY_CHANGE = 2;
/** Name of P-PAS among the budgets. */
export const P_PAS = 'p-pas';
/** Prompts being prefilled or waiting from which on P-PAS sees pressure, and the prefill tokens of an iteration under it. */
const PRESSURE_PREFILLS = 2;
const PREFILL_UNDER_PRESSURE = 2048;

/** Coefficients that are fitted: those that prefill of long prompts beside decodes shows. */
const FITTED = [
  'perTokenUs',
  'perPrefillAttentionNs',
  'prefillLaunchUs',
  'perContextTokenBesidePrefillNs',
] as const satisfies readonly Parameters<Parameters<typeof mapLaw>[1]>[1][];

/** SmolLM3 is a Llama but for the rotary embeddings that every fourth layer does without. */
export const MODELS: readonly string[] = Object.keys(configs);

/** All runs of `measured/vllm-0.22-rtx5090-token-budget.jsonl` in the folder of the reference data. */
export function readRuns(data: string): Run[] {
  const file = join(data, 'measured/vllm-0.22-rtx5090-token-budget.jsonl');
  if (!existsSync(file)) throw new Error(`${file} is missing: see docs/reference-data.md`);
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line.includes('"file": "RTX5090_')).map((line) => JSON.parse(line) as Run);
}

export function modelOf({ command }: Run): string {
  return command.split(' ')[2];
}

export function budgetOf({ config_name, max_num_batched_tokens }: Run): string {
  return config_name.startsWith('ppas') ? P_PAS : String(max_num_batched_tokens);
}

/** A profile from data sheets. */
export function estimatedOf(model: string): EngineProfile {
  const config: Readonly<Record<string, object>> = configs;
  return estimatedProfile(
    findGpu('RTX 5090'),
    modelFromConfig(JSON.stringify(config[model]), model, 'config.json'),
    1,
  );
}

/** The profile with the coefficients that give the mean latency and TTFT of the static budgets on the fitted seed. */
export function fittedProfile(model: string, runs: readonly Run[]): EngineProfile {
  const profile = estimatedOf(model);
  const shown = runs.filter(
    (run) => modelOf(run) === model && run.seed === FITTED_SEED && budgetOf(run) !== P_PAS,
  );
  const { law } = profile.weights.FP16!;
  const start = { ...law, perContextTokenBesidePrefillNs: law.perContextTokenNs };
  const at = (logs: readonly number[]): EngineProfile => {
    const changed = mapLaw(start, (value, name) => {
      const i = FITTED.indexOf(name as (typeof FITTED)[number]);
      return i < 0 ? value : value * Math.exp(logs[i]);
    });
    return { ...profile, weights: { FP16: { ...profile.weights.FP16!, law: changed } } };
  };
  const { parameters } = leastSquares(
    (logs) => {
      const fitted = at(logs);
      return [
        ...shown.flatMap((run) => {
          const { latency, ttft } = play(run, fitted);
          return [Math.log(latency / run.avg_latency), Math.log(ttft / run.avg_ttft)];
        }),
        ...logs.map((log) => log / LIKELY_CHANGE),
      ];
    },
    FITTED.map(() => 0),
    { difference: 0.03, tolerance: 1e-3 },
  );
  return at(parameters);
}

/** Mean latency and TTFT of the requests of a run, s. */
export function play(run: Run, profile: EngineProfile): { latency: number; ttft: number } {
  const isAdaptive = budgetOf(run) === P_PAS;
  const config = {
    law: profile.weights.FP16!.law,
    maxNumSeqs: run.max_num_seqs,
    kvBlocks: kvPoolBlocks(profile, 'FP16', false, 1),
    schedulingPolicy: 'fcfs' as const,
    speculationDepth: 0,
    speculation: null,
    survival: [],
  };
  const maxNumBatchedTokens = run.max_num_batched_tokens;
  const engine = new Engine(config, {
    ...engineOptionsOf(profile, false),
    requestOverheadJitter: 0,
    maxNumBatchedTokens,
  });
  const arrivals = arrivalsOf(run);
  for (const [id, arrivalS] of arrivals.entries()) {
    engine.submit({
      id,
      arrival: arrivalS * TICKS_PER_S,
      input: run.configured_prompt_tokens,
      output: run.configured_output_tokens,
    });
  }
  let budget = maxNumBatchedTokens;
  while (isAdaptive && engine.nextIteration < Number.POSITIVE_INFINITY) {
    // P-PAS decides before each iteration.
    const wanted = pressureBudget(engine, maxNumBatchedTokens);
    if (wanted !== budget) engine.configure({ ...config, maxNumBatchedTokens: wanted });
    budget = wanted;
    engine.runUntil(engine.nextIteration + 1);
  }
  engine.runUntil(Number.POSITIVE_INFINITY);
  const { count, arrivals: arrived, firstTokens, lastTokens } = engine.completions;
  if (count !== arrivals.length) throw new Error(`${count} of ${arrivals.length} requests ended`);
  let latency = 0;
  let ttft = 0;
  for (let i = 0; i < count; i++) {
    latency += msFromTicks(lastTokens[i] - arrived[i]) / 1000 / count;
    ttft += msFromTicks(firstTokens[i] - arrived[i]) / 1000 / count;
  }
  return { latency, ttft };
}

/**
 * Token budget of the next iteration under P-PAS, which caps the prefill while two prompts or more are being prefilled or wait
 * and something is being decoded. https://github.com/TimoSaemann/ppas-vllm (scheduler/ppas_vllm_0.22.1.patch)
 */
function pressureBudget(engine: Engine, most: number): number {
  let decodes = 0;
  engine.forEachRunning((_id, _arrival, _firstToken, _blocks, emitted) => {
    if (emitted > 0) decodes++;
  });
  const prefills = engine.waitingCount + engine.runningCount - decodes;
  return prefills >= PRESSURE_PREFILLS && decodes > 0 ? PREFILL_UNDER_PRESSURE + decodes : most;
}

/** Arrivals of a run, s: exponential gaps of each phase from the generator that the measurements were drawn with. */
export function arrivalsOf({ seed, phase_schedule, num_requests }: Run): number[] {
  const uniform = mersenneTwister(seed);
  const arrivals: number[] = [];
  let begin = 0;
  for (const phase of phase_schedule.split(',')) {
    const [duration, rate] = phase.split(':').map(Number);
    for (let at = begin; ; ) {
      at -= Math.log(1 - uniform()) / rate;
      if (at >= begin + duration) break;
      arrivals.push(at);
    }
    begin += duration;
  }
  if (arrivals.length !== num_requests) {
    throw new Error(`expected ${num_requests} arrivals of seed ${seed}, drew ${arrivals.length}`);
  }
  return arrivals;
}

/** Python's `random.Random(seed).random`: MT19937 of M. Matsumoto and T. Nishimura (1998), seeded by an array of one key. */
function mersenneTwister(seed: number): () => number {
  const size = 624;
  const state = new Uint32Array(size);
  state[0] = 19_650_218;
  for (let i = 1; i < size; i++) {
    state[i] = Math.imul(1_812_433_253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
  }
  let at = 1;
  const mix = (factor: number, addend: (at: number) => number) => {
    state[at] = (state[at] ^ Math.imul(state[at - 1] ^ (state[at - 1] >>> 30), factor)) + addend(at);
    if (++at < size) return;
    state[0] = state[size - 1];
    at = 1;
  };
  for (let k = 0; k < size; k++) mix(1_664_525, () => seed);
  for (let k = 1; k < size; k++) mix(1_566_083_941, (i) => -i);
  state[0] = 0x80_00_00_00;
  let next = size;
  const bits = () => {
    if (next === size) {
      for (let i = 0; i < size; i++) {
        const both = (state[i] & 0x80_00_00_00) | (state[(i + 1) % size] & 0x7f_ff_ff_ff);
        state[i] = state[(i + 397) % size] ^ (both >>> 1) ^ (both & 1 ? 0x99_08_b0_df : 0);
      }
      next = 0;
    }
    let word = state[next++];
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d_2c_56_80;
    word ^= (word << 15) & 0xef_c6_00_00;
    return (word ^ (word >>> 18)) >>> 0;
  };
  return () => {
    const high = bits() >>> 5;
    return (high * 2 ** 26 + (bits() >>> 6)) / 2 ** 53;
  };
}
