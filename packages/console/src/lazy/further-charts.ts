import type { Fields } from '../api/wire.ts';
import type { ChartSpec, SeriesSpec } from '../charts/chart-spec.ts';
import { type Tone, toneOfClass } from '../charts/palette.ts';
import { amount, count, signed, words } from '../components/format.ts';
import { kvShare, quantity, REWARD, wholeTick } from '../llm-server/charts.ts';
import type { ConsoleState } from '../state/console-state.ts';
import { type Frame, fieldNamed, type GpuMemory, type GpuTelemetry, observed } from '../state/frame.ts';

/** A part of the fullest GPU's memory. */
const layer = (
  label: string,
  tone: Tone,
  definition: string,
  size: (gpu: GpuTelemetry, parts: GpuMemory, frame: Frame) => number,
): SeriesSpec => ({
  label,
  tone,
  draw: 'layer',
  definition: `${definition}, GiB`,
  format: amount,
  value(frame) {
    const gpu = fullestGpu(frame);
    return gpu?.memory && size(gpu, gpu.memory, frame);
  },
});

const memory: ChartSpec = {
  id: 'memory',
  title: 'GPU memory',
  unit: (latest) => (fullestGpu(latest) ? 'GiB, fullest GPU' : 'GB'),
  question: 'What fills it?',
  tick: wholeTick,
  limits(frame, task) {
    const limit = fullestGpu(frame)?.memory?.limit ?? task?.memory_limit_gb;
    if (typeof limit !== 'number') return [];
    const label = fullestGpu(frame) ? `${amount(limit)} GiB limit` : `${amount(limit)} GB limit of the task`;
    return [{ value: limit, label }];
  },
  compared: {
    label: 'Used',
    definition: 'Weights, KV pool, neighbours and the rest of the GPU with the least memory to spare',
    draw: 'step',
    value(frame) {
      const parts = fullestGpu(frame)?.memory;
      return parts ? parts.limit - spare(parts) : observed(frame, 'gpu_memory_used_gb');
    },
    format: amount,
  },
  series: (frame) => {
    if (!fullestGpu(frame))
      return [{ ...quantity('Used', 'gpu_memory_used_gb', amount), tone: 'kv', draw: 'area' }];
    return [
      layer('Weights', 'weights', 'The model itself', (_, { weights }) => weights),
      layer('Overhead', 'overhead', 'Activations and the runtime', (_, { overhead }) => overhead),
      layer('Draft', 'draft', 'The model that guesses tokens for speculation', (_, { draft }) => draft),
      ...kvByClass(frame),
      layer(
        'KV free',
        'pool',
        'KV blocks reserved and paid for, but empty',
        (gpu, parts) => parts.kvPool - usedPool(gpu, parts),
      ),
      layer('Neighbours', 'tenant', 'Other tenants of the same GPU', (_, { tenant }) => tenant),
    ];
  },
};

/** The used part of the pool, shared among the classes as their KV blocks are on both GPUs together. */
function kvByClass(frame: Frame): SeriesSpec[] {
  const { classes } = frame.telemetry;
  if (classes.length === 0)
    return [layer('KV in use', 'kv', 'KV blocks that hold the context of running requests', usedPool)];
  return classes.map(({ name }, index) =>
    layer(
      `KV ${words(name).toLowerCase()}`,
      toneOfClass(name, index),
      `KV blocks of ${words(name).toLowerCase()} requests`,
      (gpu, parts, at) => usedPool(gpu, parts) * kvShare(at, index),
    ),
  );
}

/** The charts of an LLM server that are shown on demand, before those of its other numbers. */
export const FURTHER_SERVER_CHARTS: readonly ChartSpec[] = [memory];

/** The GPU with the least memory to spare; of equals, the one with more KV blocks in use. */
function fullestGpu(frame: Frame): GpuTelemetry | undefined {
  const [fullest] = frame.telemetry.gpus
    .filter(({ memory }) => memory !== undefined)
    .sort((a, b) => spare(a.memory!) - spare(b.memory!) || b.kvBlocksUsed - a.kvBlocksUsed);
  return fullest;
}

function spare({ weights, overhead, draft, kvPool, tenant, limit }: GpuMemory): number {
  return limit - weights - overhead - draft - kvPool - tenant;
}

function usedPool({ kvBlocksUsed, kvBlocksTotal }: GpuTelemetry, { kvPool }: GpuMemory): number {
  return kvBlocksTotal === 0 ? 0 : (kvPool * kvBlocksUsed) / kvBlocksTotal;
}

/** More charts than this help nobody. */
const MOST_CHARTS = 24;
/** Numbers that only count the windows or name something. */
export const NO_QUANTITY = /^(step|steps|timestep|step_index|step_count|seed|pid|timestamp)$/;

/** Charts, and after them one for each number that neither they nor those of `shown` have. */
export function withOtherCharts(
  { frames, schemas }: Pick<ConsoleState, 'frames' | 'schemas'>,
  shown: readonly ChartSpec[],
  further: readonly ChartSpec[],
): readonly ChartSpec[] {
  const frame = frames.value[0];
  const fields = [...shown, ...further]
    .flatMap((spec) => (frame ? spec.series(frame, undefined) : []))
    .flatMap(({ field }) => (field && fieldNamed(frame.observation, field)) || []);
  return [...further, ...chartsOfSchema(schemas.value?.observation ?? {}, new Set(fields))];
}

/** A chart for each number, boolean and choice in an observation, apart from the fields that are shown already. */
export function chartsOfSchema(observation: Fields, shown: ReadonlySet<string>): ChartSpec[] {
  const properties = (observation.properties ?? {}) as Record<string, Fields>;
  return Object.entries(properties)
    .filter(([name]) => !shown.has(name) && !NO_QUANTITY.test(name))
    .flatMap(([name, schema]) => chartOfField(name, schema) ?? [])
    .slice(0, MOST_CHARTS);
}

function chartOfField(name: string, schema: Fields): ChartSpec | undefined {
  const values = Array.isArray(schema.enum) ? schema.enum.map(String) : undefined;
  const levels = schema.type === 'boolean' ? ['false', 'true'] : values;
  if (!levels && schema.type !== 'number' && schema.type !== 'integer') return undefined;
  const series = {
    label: words(name),
    field: name,
    draw: levels ? ('step' as const) : ('line' as const),
    value({ observation }: { observation: Fields }) {
      const value = observation[name];
      if (levels) return value === undefined ? undefined : Math.max(0, levels.indexOf(String(value)));
      return typeof value === 'number' && Number.isFinite(value)
        ? value
        : value === undefined
          ? undefined
          : null;
    },
    format: (value: number) => (levels ? (levels[value] ?? '–') : amount(value)),
  };
  return {
    id: name,
    title: words(name),
    unit: () => '',
    question: '',
    definition: String(schema.description ?? ''),
    signed: true,
    tick: (value) => (levels ? (levels[value] ?? '') : tick(value)),
    levels,
    compared: series,
    series: () => [{ ...series, tone: 'median' }],
  };
}

function tick(value: number): string {
  const size = Math.abs(value);
  return (size >= 100 || Number.isInteger(value) ? count(value) : amount(value)).replace('-', '−');
}

/** The reward of any environment. */
export const REWARD_CHART: ChartSpec = {
  ...REWARD,
  unit: () => 'a step',
  question: 'What is it worth?',
  tick,
  rightTick: tick,
  series: () => [
    { label: 'Reward', tone: 'running', draw: 'step', value: (frame) => frame.reward, format: signed },
    { ...REWARD.compared, tone: 'text', axis: 'right' },
  ],
};
