import type { Task } from '../api/wire.ts';
import type { ChartSpec, Limit, SeriesSpec } from '../charts/chart-spec.ts';
import { type Tone, toneOfClass } from '../charts/palette.ts';
import { count, latencyText, latencyTick, signed, words } from '../components/format.ts';
import { type ClassSlo, type ClassTelemetry, type Frame, observed } from '../state/frame.ts';

type Quantity = Pick<SeriesSpec, 'label' | 'field' | 'value' | 'format'>;

/** A quantity of the observation. */
export function quantity(label: string, field: string, format: SeriesSpec['format']): Quantity {
  return { label, field, format, value: (frame) => observed(frame, field) };
}

/** A latency of the observation, which has it in `unitMs`. Zero means that nothing was measured in the window. */
export function latency(label: string, field: string, unitMs = 1): Quantity {
  return {
    ...quantity(label, field, latencyText),
    value(frame) {
      const value = observed(frame, field);
      return value === 0 ? null : value && unitMs * value;
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

/** A series for each request class: a line of a latency, unless it has another `look`. */
export function byClass(
  frame: Frame,
  definition: string,
  of: (entry: ClassTelemetry, frame: Frame) => number | null | undefined,
  look: Partial<Pick<SeriesSpec, 'draw' | 'format'>> = {},
): SeriesSpec[] {
  return frame.telemetry.classes.map(({ name }, index) => ({
    label: words(name),
    tone: toneOfClass(name, index),
    definition: `${words(name)} requests: ${definition}`,
    format: latencyText,
    ...look,
    value(each) {
      const entry = each.telemetry.classes[index];
      return entry && of(entry, each);
    },
  }));
}

/** The slowest starts of each request class. */
export function startsByClass(frame: Frame): SeriesSpec[] {
  return byClass(frame, '99th percentile of the time to first token', ({ ttftP99Ms }) => ttftP99Ms || null);
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
      ? startsByClass(frame)
      : [{ ...slowestStart, tone: 'tail' as const }]),
  ],
};

/** The share of the used KV blocks that a class holds, 0 to 1. */
export function kvShare({ telemetry: { classes } }: Frame, index: number): number {
  const all = classes.reduce((sum, { kvBlocks }) => sum + kvBlocks, 0);
  return all === 0 ? 0 : (classes[index]?.kvBlocks ?? 0) / all;
}

const PART_TONES: readonly Tone[] = ['running', 'interactive', 'tenant', 'waiting', 'batch', 'weights'];

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
export function wholeTick(value: number): string {
  return Number.isInteger(value) ? count(value) : '';
}

/** The charts of an LLM server that the page shows at first, in reading order. */
export const SERVER_CHARTS: readonly ChartSpec[] = [requests, firstToken, REWARD];

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

/** inferencegym tells the terms of its reward before their weights, which are those of the task. */
const WEIGHT_OF: Readonly<Record<string, readonly [weight: string, sign: 1 | -1]>> = {
  throughput: ['alpha', 1],
  latency: ['beta', -1],
  violations: ['gamma', -1],
  cost: ['delta', -1],
};
/** Sums of a few numbers differ by less than this when they are the same. */
const ROUNDING = 1e-6;

/** The signed parts that add up to a window's reward; none where the server does not tell them. */
export function rewardParts({ telemetry, reward }: Frame, task: Task | undefined): Record<string, number> {
  const weights = task?.reward_weights as Record<string, unknown> | undefined;
  const parts = Object.entries(telemetry.rewardParts).map(([name, part]): [string, number] => {
    const [weight, sign] = WEIGHT_OF[name] ?? [];
    const factor = weight !== undefined && weights ? weights[weight] : undefined;
    return [name, typeof factor === 'number' ? sign! * factor * part : part];
  });
  const sum = parts.reduce((total, [, part]) => total + part, 0);
  // Rewards are held within -1 and 1. Parts of a reward with other weights would tell a false story.
  const isWhole = Math.abs(Math.max(-1, Math.min(1, sum)) - (reward ?? sum)) < ROUNDING;
  return isWhole ? Object.fromEntries(parts) : {};
}
