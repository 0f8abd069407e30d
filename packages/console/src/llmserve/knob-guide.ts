/** How llmserve's knobs are called on the page, and what each buys and costs. */
export interface KnobGuide {
  readonly label: string;
  readonly buys: string;
  readonly costs: string;
  /** Spreads the slider by doubling instead of evenly. */
  readonly doubling?: boolean;
  readonly format?: 'percent';
  readonly unit?: string;
}

export const KNOB_GUIDE: Readonly<Record<string, KnobGuide>> = {
  batch_cap: {
    label: 'Batch cap',
    buys: 'More answers at once, so a shorter queue',
    costs: 'Each answer is written more slowly',
    doubling: true,
    unit: 'requests a GPU',
  },
  kv_budget_fraction: {
    label: 'KV memory',
    buys: 'Room for more and longer answers',
    costs: 'It costs rent, and a crash if a neighbour grows',
    format: 'percent',
    unit: 'of free memory',
  },
  speculation_depth: {
    label: 'Speculation',
    buys: 'Guessed tokens make small batches fast',
    costs: 'Checking the guesses slows big batches',
    unit: 'draft tokens',
  },
  quantization_tier: {
    label: 'Precision',
    buys: 'Fewer bits: faster, and more room for KV',
    costs: 'Worse answers; a switch reloads for seconds',
  },
  prefill_decode_split: {
    label: 'Split the GPUs',
    buys: 'One reads, one writes: steady tokens',
    costs: 'Neither helps the other; a switch drains both',
  },
  priority_routing: {
    label: 'Interactive first',
    buys: 'People at a keyboard do not wait in line',
    costs: 'Batch jobs wait, and are preempted first',
  },
};
