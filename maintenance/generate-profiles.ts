// npx node maintenance/generate-profiles.ts --tables <unpacked aiconfigurator-core>
//
// Makes packages/profiles/src/data/generated-profiles.json: profiles of what people serve that no measurement of an
// engine was fitted for. They are made from kernel tables (docs/kernel-tables.md); from data sheets where there are none,
// and all of them without --tables. Run it again when tables, data sheets, models or the constants of the engine change.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  estimatedProfile,
  findGpu,
  findModel,
  type Gpu,
  listLastingProfiles,
  ProfileError,
  type ReadTables,
  readOperatorTables,
  type ServedModel,
  tableProfile,
} from '@servegym/profiles';
import { type EngineProfile, kvMemoryGiB } from '@servegym/simulator';
import { compactProfiles } from '../packages/profiles/src/data/compact-profiles.ts';

const GPUS = [
  'l40s-48gb',
  'rtx-pro-6000-96gb',
  'a100-80gb',
  'h100-80gb',
  'h200-141gb',
  'b200-180gb',
  'mi300x-192gb',
];
const MODELS = [
  'llama-3-8b',
  'mistral-7b',
  'qwen2.5-7b',
  'qwen3-8b',
  'gemma-3-12b',
  'phi-4',
  'qwen3-14b',
  'mistral-small-24b',
  'gemma-3-27b',
  'qwen3.5-27b',
  'qwen2.5-32b',
  'qwen3-32b',
  'llama-3-70b',
  'qwen2.5-72b',
  'gpt-oss-20b',
  'qwen3-30b-a3b',
  'qwen3.5-35b-a3b',
  'mixtral-8x7b',
  'qwen3-next-80b-a3b',
  'glm-4.5-air',
  'llama-4-scout',
  'gpt-oss-120b',
  'qwen3.5-122b-a10b',
  'minimax-m2.5',
  'qwen3-235b-a22b',
  'glm-4.5',
  'qwen3.5-397b-a17b',
  'llama-4-maverick',
  'qwen3-coder-480b-a35b',
  'deepseek-r1',
  'deepseek-v3.2',
  'glm-5',
];
/** GPUs of a machine, and so of a tensor-parallel group. */
const MOST_GPUS = 8;
/** Least KV cache of a sensible deployment, as a share of a GPU's memory. */
const LEAST_KV_SHARE = 0.15;
/** Sizes of the group: the smallest that serves the model, and one more for lower latency. */
const SIZES = 2;
/** Groups of this size or more also divide a mixture by whole experts. */
const LEAST_EXPERT_PARALLEL = 4;

const { values: options } = parseArgs({ options: { tables: { type: 'string' }, out: { type: 'string' } } });
const out = options.out ?? join(import.meta.dirname, '../packages/profiles/src/data/generated-profiles.json');
const profiles = await generatedProfiles();
writeFileSync(out, jsonOf(profiles));
const fromTables = profiles.filter(({ status }) => status === 'tables').length;
console.log(`${out}: ${profiles.length} profiles, ${fromTables} of them from kernel tables`);

async function generatedProfiles(): Promise<EngineProfile[]> {
  const lasting = new Set(listLastingProfiles().map(({ name }) => name));
  const made: EngineProfile[] = [];
  for (const gpu of GPUS.map(findGpu)) {
    const tables = await tablesOf(gpu);
    for (const model of MODELS.map(findModel)) made.push(...profilesOf(gpu, model, tables));
  }
  return made.filter(({ name }) => !lasting.has(name)).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** `undefined` where there are none of the GPU. */
async function tablesOf(gpu: Gpu): Promise<ReadTables | undefined> {
  if (options.tables === undefined) return undefined;
  return readOperatorTables(options.tables, gpu, 'vllm').catch(ifImpossible);
}

function profilesOf(gpu: Gpu, model: ServedModel, tables: ReadTables | undefined): EngineProfile[] {
  const found: EngineProfile[] = [];
  let sizes = 0;
  for (let count = 1; count <= MOST_GPUS && sizes < SIZES; count *= 2) {
    const estimated = servable(gpu, model, count);
    if (estimated === undefined) continue;
    sizes += 1;
    const composed = tables && composedProfile(gpu, model, count, 1, tables);
    found.push(composed ?? estimated);
    if (composed && model.experts !== null && count >= LEAST_EXPERT_PARALLEL) {
      const whole = composedProfile(gpu, model, count, count, tables);
      if (whole) found.push(whole);
    }
  }
  return found;
}

/** The estimate, where the group divides the heads and has room for KV beside the largest weights that fit. */
function servable(gpu: Gpu, model: ServedModel, count: number): EngineProfile | undefined {
  const { queryHeads, kvHeads, mla } = model.shape;
  const divides =
    queryHeads % count === 0 && (mla !== null || kvHeads % count === 0 || count % kvHeads === 0);
  if (!divides) return undefined;
  const profile = possible(() => estimatedProfile(gpu, model, count));
  const largest = (['FP16', 'FP8', 'MXFP4'] as const).find((precision) => profile?.weights[precision]);
  if (profile === undefined || largest === undefined) return undefined;
  return kvMemoryGiB(profile, largest, false) >= LEAST_KV_SHARE * gpu.memoryGiB ? profile : undefined;
}

/** `undefined` where the tables do not have the model's shapes. */
function composedProfile(
  gpu: Gpu,
  model: ServedModel,
  tensor: number,
  expert: number,
  { tables, measuredOn, engine }: ReadTables,
): EngineProfile | undefined {
  const sizes = [tensor === 1 ? '' : ` --gpus ${tensor}`, expert === 1 ? '' : ` --expert-parallel ${expert}`];
  return possible(
    () =>
      tableProfile(tables, {
        ...{ gpu, measuredOn, model, engine, parallel: { tensor, expert, data: 1, pipeline: 1 } },
        source: `kernel tables of ${measuredOn.name} with ${engine.name} ${engine.version} (aiconfigurator-core)`,
        command: `servegym calibrate --tables aiconfigurator_core --gpu ${gpu.id} --model ${model.id}${sizes.join('')}`,
      }).profile,
  );
}

function possible<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    return ifImpossible(error);
  }
}

function ifImpossible(error: unknown): undefined {
  if (!(error instanceof ProfileError)) throw error;
}

/** One profile a line, so that changes show. */
function jsonOf(all: readonly EngineProfile[]): string {
  const { shared, profiles: entries } = compactProfiles(all);
  const lines = (values: readonly unknown[]) => values.map((value) => JSON.stringify(value)).join(',\n');
  return `{"shared": [\n${lines(shared)}\n],\n"profiles": [\n${lines(entries)}\n]}\n`;
}
