import type { KvPrecision } from '@servegym/simulator';
import campaigns from './campaigns.json' with { type: 'json' };

/** What a campaign did, and the flags of its servers, as far as predictions depend on them. */
interface PointSettings {
  /** Requests sent for each of those in flight. */
  readonly requestsEach: number;
  /** Shortest lengths that are drawn, over the nominal ones. */
  readonly leastLength: number;
  /** Whether the load generator goes through a list of 100 prompts again and again, after a warm-up. */
  readonly repeatsPrompts: boolean;
  /** Token budget of an iteration (SGLang chunked_prefill_size). */
  readonly budget: number;
  /** Whether prefills and decodes share an iteration on SGLang (enable_mixed_chunk), as they always do on vLLM. */
  readonly mixedChunk: boolean;
  /** Requests that the server runs at once; `null`: all that are in flight. */
  readonly runsAtOnce: number | null;
  /** Share of the memory that the engine takes (SGLang mem_fraction_static: weights and KV alone); `null`: its default. */
  readonly memoryShare: number | null;
  readonly kvCache: KvPrecision;
  /** Iterations between two looks for new requests (SGLang scheduler_recv_interval). */
  readonly receiveEvery: number;
  /** Draft tokens of the model's MTP layer (SGLang speculative_num_steps). */
  readonly drafts: number;
  /** Release before which the image of a nightly version was made; `null`: `version` names one. */
  readonly release: string | null;
  /** Asked for by a flag, in a version that does not have it by default. */
  readonly asyncScheduling: boolean;
  /** Whether experts are divided whole over all GPUs, whatever the label says. */
  readonly expertParallel: boolean;
}

/** Taken where a campaign's property is unknown: the engine's defaults, prompts drawn anew, and a load as InferenceX sends. */
const PLAIN: PointSettings = {
  ...{ requestsEach: 10, leastLength: 0.8, repeatsPrompts: false },
  ...{ budget: 8192, mixedChunk: false, runsAtOnce: null, memoryShare: null, kvCache: 'FP16' },
  ...{ receiveEvery: 1, drafts: 0, release: null, asyncScheduling: false, expertParallel: false },
};

/** What else an unknown property may be. */
const ASSUMPTIONS: readonly Readonly<{ name: string; settings: Partial<PointSettings> }>[] = [
  { name: 'prompts repeated', settings: { repeatsPrompts: true } },
  { name: 'lengths fixed', settings: { leastLength: 1 } },
  { name: 'one batch', settings: { requestsEach: 1 } },
  ...[4, 8, 16, 32, 64].map((runsAtOnce) => ({
    name: `${runsAtOnce} run at once`,
    settings: { runsAtOnce },
  })),
  { name: '3 drafts', settings: { drafts: 3 } },
  { name: '8-bit KV cache', settings: { kvCache: 'FP8' } },
];

/** A campaign of which nothing is known, as rows of no known one count. */
const UNKNOWN = {
  name: 'unknown',
  load: { requestsEach: { value: null }, leastLength: { value: null }, repeatsPrompts: { value: null } },
  servers: [],
};

/** Labels of a point that tell which server of a campaign it was measured on. */
type PointLabels = Readonly<Record<'engine' | 'version' | 'model' | 'system' | 'precision', string>> &
  Readonly<Record<'tensor' | 'expert' | 'concurrency' | 'inputTokens', number>>;

/**
 * The campaign that a row of the table is from, with its settings and the names of those that are unknown.
 */
export function campaignOf(source: string, point: PointLabels) {
  const campaign = campaigns.find(({ sources }) => new RegExp(sources).test(source)) ?? UNKNOWN;
  const { flags = {} } = campaign.servers.find(({ where }) => isServer(where, point)) ?? {};
  const load = Object.entries(campaign.load).map(([name, { value }]) => [name, value]);
  const known: Record<string, unknown> = { ...Object.fromEntries(load), ...flags };
  if (known.budgetOfInput !== undefined) known.budget = Number(known.budgetOfInput) * point.inputTokens;
  if (known.budgetBeyondInput !== undefined)
    known.budget =
      point.inputTokens +
      Number(known.budgetBeyondInput) +
      Number(known.budgetPerSequence ?? 0) * point.concurrency;
  const names = Object.keys(PLAIN) as (keyof PointSettings)[];
  const settings = Object.fromEntries(names.map((name) => [name, known[name] ?? PLAIN[name]]));
  return {
    campaign: campaign.name,
    settings: settings as unknown as PointSettings,
    unknown: [...names.filter((name) => known[name] === null), ...(point.version === '' ? ['version'] : [])],
  };
}

function isServer(where: Readonly<Record<string, unknown>>, point: PointLabels): boolean {
  return Object.entries(where).every(([name, value]) => {
    if (name === 'concurrencyFrom') return point.concurrency >= Number(value);
    if (name === 'model') return point.model.includes(String(value));
    const label = point[name as keyof PointLabels];
    return Array.isArray(value) ? value.includes(label) : label === value;
  });
}

/** Settings under each other assumption on what is unknown. */
export function assumptionsOf({
  settings,
  unknown,
}: Pick<ReturnType<typeof campaignOf>, 'settings' | 'unknown'>) {
  return ASSUMPTIONS.filter(({ settings: changed }) => unknown.some((name) => name in changed)).map(
    ({ name, settings: changed }) => ({ name, settings: { ...settings, ...changed } }),
  );
}

/** What is known of each campaign's load, by property, with its evidence. */
export function campaignRows(): string[][] {
  return campaigns.flatMap(({ name, load }) =>
    Object.entries(load).map(([property, { value, evidence }]) => [
      ...[name, property, value === null ? 'unknown' : String(value), evidence],
    ]),
  );
}
