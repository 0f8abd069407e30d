/** Runs of vLLM 0.22 on an RTX 5090 with static token budgets (TimoSaemann/ppas-vllm, Apache-2.0), and profiles of their models. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { estimatedProfile, findGpu, modelFromConfig } from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
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
  readonly avg_ttft: number;
  readonly avg_tpot: number;
}

/** SmolLM3 is a Llama but for the rotary embeddings that every fourth layer does without. */
export const MODELS: readonly string[] = Object.keys(configs);

/** Runs with static budgets of `measured/vllm-0.22-rtx5090-token-budget.jsonl` in the folder of the reference data. */
export function readRuns(data: string): Run[] {
  const file = join(data, 'measured/vllm-0.22-rtx5090-token-budget.jsonl');
  if (!existsSync(file)) throw new Error(`${file} is missing: see docs/reference-data.md`);
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines
    .filter((line) => line.includes('"file": "RTX5090_'))
    .map((line) => JSON.parse(line) as Run)
    .filter(({ config_name }) => !config_name.startsWith('ppas'));
}

export function modelOf({ command }: Run): string {
  return command.split(' ')[2];
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
