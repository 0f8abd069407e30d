import type { ProfileEntry } from './catalog.ts';

/** State of the element, by the names of its attributes. */
export interface Settings {
  readonly model: string;
  readonly gpu: string;
  readonly count: number;
  readonly weights: string;
  /** A `vllm serve` line, which then says the other settings of the engine; empty for vLLM's defaults. */
  readonly command: string;
  readonly rate: number;
  readonly input: number;
  readonly output: number;
  readonly 'slo-ttft': number;
  readonly 'slo-tpot': number;
}

export const DEFAULTS: Settings = {
  ...{ model: 'Llama-3-8B', gpu: 'H100-80GB', count: 1, weights: '', command: '' },
  ...{ rate: 8, input: 1024, output: 256, 'slo-ttft': 1000, 'slo-tpot': 50 },
};

/** Ranges of the numbers. */
export const RANGES = {
  count: [1, 64],
  rate: [0.05, 500],
  input: [1, 131_072],
  output: [1, 16_384],
  'slo-ttft': [1, 600_000],
  'slo-tpot': [0.1, 10_000],
} as const satisfies Partial<Record<keyof Settings, readonly [number, number]>>;

/** Settings as texts give them; what is absent or no number in its range is as `otherwise` has it. */
export function readSettings(text: (name: string) => string | null, otherwise: Settings): Settings {
  const read = Object.entries(otherwise).map(([name, known]) => {
    const given = text(name);
    if (given === null) return [name, known];
    if (typeof known === 'string') return [name, given];
    const value = Number(given);
    const [low, high] = RANGES[name as keyof typeof RANGES];
    const isWhole = !['rate', 'slo-tpot'].includes(name);
    const isRight = given.trim() !== '' && value >= low && value <= high && (!isWhole || value % 1 === 0);
    return [name, isRight ? value : known];
  });
  return Object.fromEntries(read);
}

const plain = (name: string) => name.toLowerCase().replace(/[\s_.-]/g, '');

/** Those of the name, else those that have it in theirs: `h100` is H100-80GB. */
function alike(names: readonly string[], wanted: string): string | undefined {
  return (
    names.find((name) => plain(name) === plain(wanted)) ??
    names.find((name) => plain(name).startsWith(plain(wanted))) ??
    names.find((name) => plain(name).includes(plain(wanted)))
  );
}

/** The profile of model, GPU and number of GPUs. @throws RangeError with those there are */
export function entryOf(entries: readonly ProfileEntry[], { model, gpu, count }: Settings): ProfileEntry {
  const listed = (names: readonly (string | number)[]) => [...new Set(names)].join(', ');
  const models = entries.map((entry) => entry.model);
  const found = alike(models, model);
  if (found === undefined) throw new RangeError(`model: expected one of ${listed(models)}, got ${model}`);
  const ofModel = entries.filter((entry) => entry.model === found);
  const gpus = ofModel.map((entry) => entry.gpu);
  const card = alike(gpus, gpu);
  const onGpu = ofModel.filter((entry) => entry.gpu === card);
  if (card === undefined)
    throw new RangeError(`gpu: expected one of ${listed(gpus)} for ${found}, got ${gpu}`);
  const counts = onGpu.map((entry) => entry.count);
  const entry = onGpu.find((each) => each.count === count);
  if (entry === undefined)
    throw new RangeError(`count: expected one of ${listed(counts)} for ${found} on ${card}, got ${count}`);
  return entry;
}
