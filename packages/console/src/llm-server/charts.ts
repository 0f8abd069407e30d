import type { Task } from '../api/wire.ts';
import type { ChartSpec, Limit, SeriesSpec } from '../charts/chart-spec.ts';
import { type Tone, toneOfClass } from '../charts/palette.ts';
import { amount, count, latencyText, latencyTick, signed, words } from '../components/format.ts';
import type { Frame } from '../state/frame.ts';
import { observed } from '../state/observed.ts';
import { rewardParts } from './reward-parts.ts';
import type { ClassSlo, ClassTelemetry, GpuMemory, GpuTelemetry } from './telemetry.ts';

type Quantity = Pick<SeriesSpec, 'label' | 'field' | 'value' | 'format'>;

/** A quantity of the observation. */
function quantity(label: string, field: string, format: SeriesSpec['format']): Quantity {
  return { label, field, format, value: (frame) => observed(frame, field) };
}

/** A latency of the observation, ms. Zero means that nothing was measured in the window. */
function latency(label: string, field: string): Quantity {
  return {
    ...quantity(label, field, latencyText),
    value(frame) {
      const value = observed(frame, field);
      return value === 0 ? null : value;
    },
  };
}

/** A median latency, drawn as a background to the lines of the request classes where there are some. */
function median(frame: Frame, field: string): SeriesSpec {
  const hasClasses = frame.telemetry.classes.length > 0;
  return {
    ...latency('Median', field),
    tone: hasClasses ? 'text' : 'median',
    draw: hasClasses ? 'dashed' : 'line',
  };
}

/** A line for each request class. */
function byClass(
  frame: Frame,
  definition: string,
  of: (entry: ClassTelemetry) => number | undefined,
): SeriesSpec[] {
  return frame.telemetry.classes.map(({ name }, index) => ({
    label: words(name),
    tone: toneOfClass(name, index),
    definition: `${words(name)} requests: ${definition}`,
    value: (of_) => {
      const entry = of_.telemetry.classes[index];
      return entry && (of(entry) || null);
    },
    format: latencyText,
  }));
}

const waiting = quantity('Waiting', 'queue_depth', count);

const requests: ChartSpec = {
  id: 'requests',
  title: 'Requests in the server',
  unit: () => 'requests',
  question: 'Who waits?',
  tick: wholeTick,
  compared: waiting,
  series: () => [
    { ...waiting, tone: 'waiting', draw: 'area' },
    { ...quantity('Running', 'active_requests', count), tone: 'running' },
  ],
};

const slowestStart = latency('Slowest 1\u202f%', 'p99_ttft_ms');

const firstToken: ChartSpec = {
  id: 'ttft',
  title: 'Time to first token',
  unit: () => 'TTFT',
  question: 'When does it start?',
  logarithmic: true,
  tick: latencyTick,
  limits: ({ telemetry: { slo } }, task) =>
    limits(slo.length > 0 ? slo : sloOfTask(task), ({ ttftMs }) => ttftMs),
  comparedUnit: 'slowest 1\u202f%',
  compared: {
    ...slowestStart,
    value: (frame) => slowestStart.value(frame) ?? latency('', 'p50_ttft_ms').value(frame),
  },
  series: (frame) => [
    median(frame, 'p50_ttft_ms'),
    ...(frame.telemetry.classes.length > 0
      ? byClass(frame, '99th percentile of the time to first token', ({ ttftP99Ms }) => ttftP99Ms)
      : [{ ...slowestStart, tone: 'tail' as const }]),
  ],
};

const betweenTokens: ChartSpec = {
  id: 'itl',
  title: 'Time between tokens',
  unit: () => 'ITL, ms',
  question: 'How fast is it?',
  tick: wholeTick,
  limits: ({ telemetry }) => limits(telemetry.slo, ({ tpotMs }) => tpotMs),
  compared: latency('Median', 'p50_itl_ms'),
  series: (frame) => [
    median(frame, 'p50_itl_ms'),
    ...byClass(frame, 'median time per output token', ({ tpotP50Ms }) => tpotP50Ms),
  ],
};

const tokensOut = quantity('Tokens out', 'throughput_tps', (value) => `${count(value)}/s`);
const requestsIn = quantity('Requests in', 'request_arrival_rate', (value) => `${amount(value)}/s`);

const throughput: ChartSpec = {
  id: 'throughput',
  title: 'Work in, work out',
  unit: () => 'tokens/s',
  question: 'Does it keep up?',
  tick: wholeTick,
  rightTick: fineTick,
  compared: tokensOut,
  series: () => [
    { ...tokensOut, tone: 'tokens', draw: 'area' },
    { ...requestsIn, tone: 'arrivals', axis: 'right', draw: 'dashed' },
  ],
};

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

/** The share of the used KV blocks that a class holds, 0 to 1. */
export function kvShare({ telemetry: { classes } }: Frame, index: number): number {
  const all = classes.reduce((sum, { kvBlocks }) => sum + kvBlocks, 0);
  return all === 0 ? 0 : (classes[index]?.kvBlocks ?? 0) / all;
}

const PART_TONES: readonly Tone[] = ['tokens', 'interactive', 'tenant', 'waiting', 'batch', 'weights'];

/** The reward of an environment. */
export const REWARD: ChartSpec = {
  id: 'reward',
  title: 'Reward',
  unit: () => 'a window',
  question: 'What is it worth, and why?',
  signed: true,
  tick: signedTick,
  comparedUnit: 'sum so far',
  compared: {
    label: 'So far',
    definition: 'The sum of the rewards so far: the return',
    value: (frame) => frame.totalReward,
    format: signed,
  },
  series: (latest, task) => [
    ...Object.keys(rewardParts(latest, task)).map(
      (part, i): SeriesSpec => ({
        label: words(part),
        tone: PART_TONES[i % PART_TONES.length],
        draw: 'layer',
        definition: `What ${words(part).toLowerCase()} adds to the reward`,
        value: (frame) => rewardParts(frame, task)[part] ?? null,
        format: signed,
      }),
    ),
    {
      label: 'Reward',
      tone: 'text',
      definition: 'The sum of its parts: what the policy is trained to collect',
      value: (frame) => frame.reward,
      format: signed,
    },
  ],
};

/** At most two decimals; at least one, but for zero. */
function signedTick(value: number): string {
  if (value === 0) return '0';
  return (Math.abs(value) < 10 ? value.toFixed(2).replace(/0$/, '') : count(value)).replace('-', '−');
}

/** Marks whole numbers only, of quantities that are read in whole numbers. */
function wholeTick(value: number): string {
  return Number.isInteger(value) ? count(value) : '';
}

function fineTick(value: number): string {
  return Number.isInteger(value) ? count(value) : amount(value);
}

/** The charts of an LLM server, in reading order. */
export const SERVER_CHARTS: readonly ChartSpec[] = [
  requests,
  firstToken,
  betweenTokens,
  throughput,
  memory,
  REWARD,
];

/** The GPU with the least memory to spare; of equals, the one with more KV blocks in use. */
export function fullestGpu(frame: Frame): GpuTelemetry | undefined {
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

/** The limits that a task names once for all its windows, ms by class. */
function sloOfTask(task: Task | undefined): ClassSlo[] {
  const slo_ms = task?.slo_ms;
  if (typeof slo_ms !== 'object' || slo_ms === null) return [];
  return Object.entries(slo_ms).flatMap(([name, ttftMs]) =>
    typeof ttftMs === 'number' ? [{ name, ttftMs }] : [],
  );
}

/** One limit a distinct value, named by its classes where there are several. */
function limits(slo: readonly ClassSlo[], of: (limits: ClassSlo) => number | undefined): Limit[] {
  const byValue = new Map<number, string[]>();
  for (const entry of slo) {
    const value = of(entry);
    if (value !== undefined)
      byValue.set(value, [...(byValue.get(value) ?? []), words(entry.name).toLowerCase()]);
  }
  return [...byValue].map(([value, names]) => ({
    value,
    label: slo.length > 1 && byValue.size > 1 ? `${names.join(', ')} limit` : 'limit',
  }));
}
