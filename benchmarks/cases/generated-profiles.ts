import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  estimatedProfile,
  findGpu,
  findModel,
  findProfile,
  type Gpu,
  listLastingProfiles,
  ProfileError,
  type ReadTables,
  readOperatorTables,
  type ServedModel,
  tableProfile,
} from '@servegym/profiles';
import { type EngineProfile, kvMemoryGiB } from '@servegym/simulator';
import { compactProfiles } from '../../packages/profiles/src/data/catalog.ts';
import served from '../generated-profiles.json' with { type: 'json' };
import { benchmark, text } from '../harness.ts';

/** GPUs of a machine, and so of a tensor-parallel group. */
const MOST_GPUS = 8;
/** Least KV cache of a sensible deployment, as a share of a GPU's memory. */
const LEAST_KV_SHARE = 0.15;
/** Sizes of the group: the smallest that serves the model's largest weights, and one more for lower latency. */
const SIZES = 2;
/** Groups of this size or more also divide a mixture by whole experts. */
const LEAST_EXPERT_PARALLEL = 4;

const OUT = join(import.meta.dirname, '../../packages/profiles/src/data/generated-profiles.json');

export default benchmark({
  what: 'Profiles of what people serve that no measurement of an engine was fitted for, on the GPUs and models of benchmarks/generated-profiles.json: from the kernel tables of `--tables`, the unpacked package aiconfigurator-core (docs/kernel-tables.md), and from data sheets where there are none. Writes them into the checkout, or to `--out`. Run it again when tables, data sheets, models or the constants of the engine change.',
  options: { tables: text, out: OUT },
  async *run({ tables, out }) {
    // Recorded results of tasks count with the coefficients of their profiles.
    const made = served.playedOn.map(findProfile);
    const lasting = new Set([...listLastingProfiles(), ...made].map(({ name }) => name));
    for (const gpu of served.gpus.map(findGpu)) {
      const read = tables && (await readOperatorTables(tables, gpu, 'vllm').catch(ifImpossible));
      const found = served.models
        .map(findModel)
        .flatMap((model) => profilesOf(gpu, model, read || undefined))
        .filter(({ name }) => !lasting.has(name));
      made.push(...found);
      const fromTables = found.filter(({ status }) => status === 'tables').length;
      yield { gpu: gpu.name, profiles: found.length, 'from kernel tables': fromTables };
    }
    writeFileSync(out, jsonOf(made.sort((a, b) => (a.name < b.name ? -1 : 1))));
  },
});

function profilesOf(gpu: Gpu, model: ServedModel, tables: ReadTables | undefined): EngineProfile[] {
  const found: EngineProfile[] = [];
  let sizes = 0;
  for (let count = 1; count <= MOST_GPUS && sizes < SIZES; count *= 2) {
    const estimated = dividing(gpu, model, count);
    const served = WEIGHTS.filter((precision) => estimated?.weights[precision]);
    const roomy = served.filter((each) => hasRoom(estimated!, each));
    if (estimated === undefined || roomy.length === 0) continue;
    // A group that has room for quantized weights alone is one more.
    sizes += Number(roomy[0] === served[0]);
    const composed = tables && composedProfile(gpu, model, count, 1, tables);
    found.push(composed ?? estimated);
    if (composed && model.experts !== null && count >= LEAST_EXPERT_PARALLEL) {
      const whole = composedProfile(gpu, model, count, count, tables);
      if (whole) found.push(whole);
    }
  }
  return found;
}

/** Weights by their size, the largest first. */
const WEIGHTS = ['FP16', 'FP8', 'MXFP4'] as const;

function hasRoom(profile: EngineProfile, weights: (typeof WEIGHTS)[number]): boolean {
  return kvMemoryGiB(profile, weights, false) >= LEAST_KV_SHARE * profile.gpu.memoryGiB;
}

/** The estimate, where the group divides the heads. */
function dividing(gpu: Gpu, model: ServedModel, count: number): EngineProfile | undefined {
  const { queryHeads, kvHeads, mla } = model.shape;
  const divides =
    queryHeads % count === 0 && (mla !== null || kvHeads % count === 0 || count % kvHeads === 0);
  return divides ? possible(() => estimatedProfile(gpu, model, count)) : undefined;
}

/** `undefined` where the tables do not have the model's shapes. */
function composedProfile(
  gpu: Gpu,
  model: ServedModel,
  tensor: number,
  expert: number,
  { tables, measuredOn, engine }: ReadTables,
): EngineProfile | undefined {
  const experts = expert === 1 ? '' : ' --enable-expert-parallel';
  const deployment = tensor === 1 ? '' : ` --deployment "-tp ${tensor}${experts}"`;
  return possible(
    () =>
      tableProfile(tables, {
        ...{ gpu, measuredOn, model, engine, parallel: { tensor, expert, data: 1, pipeline: 1 } },
        source: `kernel tables of ${measuredOn.name} with ${engine.name} ${engine.version} (aiconfigurator-core)`,
        command: `servegym profile make aiconfigurator_core --gpu ${gpu.id} --model ${model.id}${deployment}`,
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
