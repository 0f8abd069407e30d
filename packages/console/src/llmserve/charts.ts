import type { ChartSpec, Limit, SeriesSpec } from '../charts/chart-spec.ts';
import type { Tone } from '../charts/palette.ts';
import { amount, count, latencyText, latencyTick, signed, words } from '../components/format.ts';
import { type Frame, observed } from '../state/frame.ts';
import type { ClassSlo, GpuMemory, GpuTelemetry } from './telemetry.ts';

const field = (name: string) => (frame: Frame) => observed(frame, name);

/** Zero in a latency means that nothing was measured in the window. */
const measured = (name: string) => (frame: Frame) => {
  const value = observed(frame, name);
  return value === 0 ? null : value;
};

const requests: ChartSpec = {
  id: 'requests',
  title: 'Requests in the server',
  unit: 'requests',
  question: 'Does the queue grow?',
  tick: count,
  series: () => [
    {
      label: 'Waiting',
      tone: 'waiting',
      draw: 'area',
      field: 'queue_depth',
      value: field('queue_depth'),
      format: count,
    },
    {
      label: 'Running',
      tone: 'running',
      field: 'active_requests',
      value: field('active_requests'),
      format: count,
    },
  ],
};

const firstToken: ChartSpec = {
  id: 'ttft',
  title: 'Time to first token',
  unit: 'log scale',
  question: 'How long until it starts?',
  logarithmic: true,
  tick: latencyTick,
  limits: ({ telemetry }) => limits(telemetry.slo, ({ ttftMs }) => ttftMs),
  series: () => [
    {
      label: 'Median',
      tone: 'median',
      field: 'p50_ttft_ms',
      value: measured('p50_ttft_ms'),
      format: latencyText,
    },
    {
      label: 'Slowest 1\u202f%',
      tone: 'tail',
      field: 'p99_ttft_ms',
      value: measured('p99_ttft_ms'),
      format: latencyText,
    },
  ],
};

const betweenTokens: ChartSpec = {
  id: 'itl',
  title: 'Time between tokens',
  unit: 'ms',
  question: 'How fast is it written?',
  tick: count,
  limits: ({ telemetry }) => limits(telemetry.slo, ({ tpotMs }) => tpotMs),
  series: () => [
    {
      label: 'Median',
      tone: 'median',
      field: 'p50_itl_ms',
      value: measured('p50_itl_ms'),
      format: latencyText,
    },
  ],
};

const throughput: ChartSpec = {
  id: 'throughput',
  title: 'Work in, work out',
  unit: 'tokens/s',
  question: 'Does it follow demand?',
  tick: count,
  rightTick: count,
  series: () => [
    {
      label: 'Tokens out',
      tone: 'tokens',
      draw: 'area',
      field: 'throughput_tps',
      value: field('throughput_tps'),
      format: (value) => `${count(value)}/s`,
    },
    {
      label: 'Requests in',
      tone: 'arrivals',
      axis: 'right',
      draw: 'dashed',
      field: 'request_arrival_rate',
      value: field('request_arrival_rate'),
      format: (value) => `${amount(value)}/s`,
    },
  ],
};

const layer = (
  label: string,
  tone: Tone,
  definition: string,
  part: (gpu: GpuTelemetry, memory: GpuMemory) => number,
): SeriesSpec => ({
  label,
  tone,
  definition,
  draw: 'layer',
  value(frame) {
    const gpu = fullestGpu(frame);
    return gpu?.memory && part(gpu, gpu.memory);
  },
  format: amount,
});

const memory: ChartSpec = {
  id: 'memory',
  title: 'GPU memory',
  unit: 'GiB, fullest GPU',
  question: 'What fills the GPU?',
  tick: count,
  limits(frame) {
    const limit = fullestGpu(frame)?.memory?.limit;
    return limit === undefined ? [] : [{ label: `${amount(limit)} GiB limit`, value: limit }];
  },
  series: (frame) => [
    layer('Weights', 'weights', 'The model itself; fewer bits, less memory', (_, { weights }) => weights),
    layer('Overhead', 'overhead', 'Activations, CUDA graphs and the runtime', (_, { overhead }) => overhead),
    layer('Draft', 'draft', 'The model that guesses tokens for speculation', (_, { draft }) => draft),
    layer('KV in use', 'kv', 'KV blocks that hold the context of running requests', usedPool),
    layer(
      'KV free',
      'pool',
      'KV blocks reserved and paid for, but empty',
      (gpu, parts) => parts.kvPool - usedPool(gpu, parts),
    ),
    layer('Neighbours', 'tenant', 'Other tenants of the same GPU', (_, { tenant }) => tenant),
    ...(fullestGpu(frame)?.memory
      ? []
      : [
          {
            label: 'Used',
            tone: 'kv',
            draw: 'area',
            field: 'gpu_memory_used_gb',
            value: field('gpu_memory_used_gb'),
            format: (value: number) => `${amount(value)} GB`,
          } as const,
        ]),
  ],
};

const PART_TONES: readonly Tone[] = ['tokens', 'interactive', 'tenant', 'waiting', 'batch', 'weights'];

const reward: ChartSpec = {
  id: 'reward',
  title: 'Reward',
  unit: 'a window',
  question: 'What is it worth, and why?',
  signed: true,
  tick: (value) => value.toFixed(1).replace('-', '−'),
  series: ({ telemetry }) => [
    ...Object.keys(telemetry.rewardParts).map(
      (part, i): SeriesSpec => ({
        label: words(part),
        tone: PART_TONES[i % PART_TONES.length],
        draw: 'layer',
        value: (frame) => frame.telemetry.rewardParts[part] ?? null,
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

/** The charts of llmserve, in reading order. */
export const LLMSERVE_CHARTS: readonly ChartSpec[] = [
  requests,
  firstToken,
  betweenTokens,
  throughput,
  memory,
  reward,
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
