import type { Knob } from '../api/action-schema.ts';
import { amount, percent } from '../components/format.ts';

/** Name of a knob of an LLM server on the page, with its benefit and its cost. */
interface KnobGuide {
  readonly label: string;
  readonly buys: string;
  readonly costs: string;
  /** Spreads the slider by doubling instead of evenly. */
  readonly doubling?: boolean;
  readonly format?: 'percent';
  readonly unit?: string;
  /** Names of values that are numbers on the wire. */
  readonly names?: Readonly<Record<string, string>>;
}

const BATCH: KnobGuide = {
  label: 'Batch cap',
  buys: 'More answers at once, so a shorter queue',
  costs: 'Each answer is written more slowly',
  doubling: true,
  unit: 'requests a GPU',
};
const KV_MEMORY: KnobGuide = {
  label: 'KV memory',
  buys: 'Room for more and longer answers',
  costs: 'It costs rent, and a crash if a neighbour grows',
  format: 'percent',
  unit: 'of free memory',
};
const SPECULATION: KnobGuide = {
  label: 'Speculation',
  buys: 'Guessed tokens make small batches fast',
  costs: 'Checking the guesses slows big batches',
  unit: 'draft tokens',
};
const PRECISION: KnobGuide = {
  label: 'Precision',
  buys: 'Fewer bits: faster, and more room for KV',
  costs: 'Worse answers; a switch reloads for seconds',
  names: { 0: 'FP16', 1: 'INT8', 2: 'INT4' },
};
const SPLIT: KnobGuide = {
  label: 'Split the GPUs',
  buys: 'One reads, one writes: steady tokens',
  costs: 'Neither helps the other; a switch drains both',
};

const ROUTING = { costs: 'It counts less beside the other two weights' };

/** By the field of the action, in `llmserve`, `inferencegym` and `fleet`. */
export const KNOB_GUIDE: Readonly<Record<string, KnobGuide | undefined>> = {
  batch_cap: BATCH,
  kv_budget_fraction: KV_MEMORY,
  speculation_depth: SPECULATION,
  quantization_tier: PRECISION,
  prefill_decode_split: SPLIT,
  priority_routing: {
    label: 'Interactive first',
    buys: 'People at a keyboard do not wait in line',
    costs: 'Batch jobs wait, and are preempted first',
  },
  batch_size: { ...BATCH, label: 'Batch size', unit: 'requests' },
  kv_budget: { ...KV_MEMORY, costs: 'It costs rent; more than the GPU has is a crash', unit: undefined },
  spec_length: SPECULATION,
  quant_tier: { ...PRECISION, costs: 'Worse answers' },
  prefill_disagg: { ...SPLIT, costs: 'Neither helps the other' },
  replicas: {
    label: 'Replicas',
    buys: 'More room, after a cold start',
    costs: 'Each is billed from the moment it is asked for',
  },
  second_replicas: {
    label: 'Second kind',
    buys: 'Replicas on the other GPU',
    costs: 'Each is billed, too',
  },
  prefill_replicas: {
    label: 'Prefill replicas',
    buys: 'They read prompts, the others write: steady tokens',
    costs: 'Neither kind helps the other',
  },
  routing_queue: { label: 'Route by queue', buys: 'Replicas with few requests come first', ...ROUTING },
  routing_cache: { label: 'Route by memory', buys: 'Replicas with free KV blocks come first', ...ROUTING },
  routing_prefix: { label: 'Route by prefix', buys: 'Prompts go where they are cached', ...ROUTING },
  admission_seconds: {
    label: 'Admission',
    buys: 'A short queue: best effort, then batch, is refused',
    costs: 'Refused work earns nothing',
    unit: 's of queue',
  },
  max_num_batched_tokens: {
    label: 'Token budget',
    buys: 'Prompts are read in fewer steps',
    costs: 'Each step holds up the answers',
    doubling: true,
    unit: 'tokens',
  },
  max_num_active_seqs: {
    label: 'Sequence cap',
    buys: 'More answers at once',
    costs: 'Each is written more slowly',
    doubling: true,
    unit: 'a replica',
  },
};

/** A knob's value as the page says it, without its unit. */
export function valueText(knob: Knob, value: unknown): string {
  const guide = KNOB_GUIDE[knob.name];
  if (value === undefined || value === null) return '–';
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (knob.kind === 'choice') return guide?.names?.[String(value)] ?? String(value);
  if (typeof value !== 'number') return typeof value === 'string' ? value : JSON.stringify(value);
  if (guide?.format === 'percent') return percent(value);
  return Number.isInteger(value) ? String(value) : amount(value);
}

/** A knob's value with its unit. */
export function knobText(knob: Knob, value: unknown): string {
  const unit = KNOB_GUIDE[knob.name]?.unit;
  const text = valueText(knob, value);
  return unit ? `${text} ${unit}` : text;
}
