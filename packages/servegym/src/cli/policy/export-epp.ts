import { readFile } from 'node:fs/promises';
import { type PolicyFunctions, RandomStream } from '@servegym/simulator';
import { parametersOf } from './parameters.ts';

type Score = NonNullable<PolicyFunctions['score']>;

/** A replica as a policy sees it, drawn. */
type Probe = Readonly<Record<string, number>>;

/** 1 for the least of a metric, 0 for the most. */
const least = (name: string) => (replica: Probe, all: readonly Probe[]) => {
  const values = all.map((each) => each[name]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return high === low ? 1 : (high - replica[name]) / (high - low);
};

/** The scorers of the endpoint picker, as a policy computes them from a replica among others. */
const SCORERS = {
  'prefix-cache-scorer': ({ prefix_match }) => prefix_match,
  'queue-scorer': least('num_requests_waiting'),
  'kv-cache-utilization-scorer': ({ kv_cache_usage_perc }) => 1 - kv_cache_usage_perc,
  'running-requests-size-scorer': least('num_requests_running'),
} as const satisfies Record<string, (replica: Probe, all: readonly Probe[]) => number>;
type Scorer = keyof typeof SCORERS;

const PROBES = 200;
const REPLICAS = 5;
/** Difference between a score and the sum of the scorers that is rounding. */
const TOLERANCE = 1e-6;

/** Weights of the endpoint picker's scorers that give a policy's scores; `null` where no weights from 0 do. */
export function scorerWeights(score: Score): Partial<Record<Scorer, number>> | null {
  const draws = new RandomStream(0, 'export probes');
  const names = Object.keys(SCORERS) as Scorer[];
  const weights = Object.fromEntries(names.map((name) => [name, 0])) as Record<Scorer, number>;
  const shared = (): Probe => ({
    ...{ index: draws.integer(0, 31), kind: draws.integer(0, 1), weight: 1 + draws.uniform() },
    ...{ requests_sent: draws.integer(0, 9), scrape_age: draws.uniform() },
    ...{ requests_in_flight: draws.integer(0, 99), prompt_tokens_queued: draws.integer(0, 9999) },
    ...{ prefix_cached_tokens: draws.integer(0, 999), kv_cache_tokens: draws.integer(1, 9) * 1e5 },
    usd_per_hour: 1 + draws.uniform(),
    ...{ num_requests_running: draws.integer(0, 200), num_requests_waiting: draws.integer(0, 50) },
    kv_cache_usage_perc: draws.uniform(),
  });
  const scored = (replicas: readonly Probe[]) => {
    const request = { prompt_tokens: 1000, priority: 0, arrival: 0, prefix_hashes: [] };
    const fleet = { replicas, num_requests_held: 0, queue_seconds: 0, random: () => 0.5 };
    return replicas.map((replica) => score(request as never, replica as never, 0, fleet as never));
  };
  const matched = (replica: Probe, share: number): Probe => ({
    ...replica,
    ...{ prefix_match: share, prefix_match_tokens: 1000 * share },
  });
  // Two replicas that differ in what one scorer looks at.
  const [first, second] = [matched(shared(), 0), matched(shared(), 0)];
  const changes: Record<Scorer, Probe> = {
    'prefix-cache-scorer': matched(first, 1),
    'queue-scorer': { ...first, num_requests_waiting: first.num_requests_waiting + 10 },
    'kv-cache-utilization-scorer': { ...first, kv_cache_usage_perc: first.kv_cache_usage_perc / 2 },
    'running-requests-size-scorer': { ...first, num_requests_running: first.num_requests_running + 10 },
  };
  for (const name of names) {
    const pair = [first, changes[name]];
    const [a, b] = scored(pair);
    const [from, to] = pair.map((each) => SCORERS[name](each, pair));
    weights[name] = Number(((b - a) / (to - from)).toPrecision(9));
  }
  for (let probe = 0; probe < PROBES; probe++) {
    const fleet = [second, ...Array.from({ length: REPLICAS }, shared)].map((each) =>
      matched(each, draws.uniform()),
    );
    const scores = scored(fleet);
    const sums = fleet.map((each) =>
      names.reduce((sum, name) => sum + weights[name] * SCORERS[name](each, fleet), 0),
    );
    const isSame = scores.every(
      (value, i) =>
        Math.abs(value - scores[0] - (sums[i] - sums[0])) <= TOLERANCE * Math.max(1, Math.abs(value)),
    );
    if (!isSame) return null;
  }
  const values = Object.values(weights);
  if (values.some((value) => value < 0) || values.every((value) => value === 0)) return null;
  return Object.fromEntries(names.filter((name) => weights[name] > 0).map((name) => [name, weights[name]]));
}

/** The configuration of an endpoint picker with weights for its scorers. */
export function pickerConfig(weights: Partial<Record<Scorer, number>>): string {
  const entries = Object.entries(weights);
  return [
    'apiVersion: llm-d.ai/v1alpha1',
    'kind: EndpointPickerConfig',
    'plugins:',
    ...entries.map(([name]) => `- type: ${name}`),
    '- type: max-score-picker',
    '- type: single-profile-handler',
    'schedulingProfiles:',
    '- name: default',
    '  plugins:',
    ...entries.flatMap(([name, weight]) => [`  - pluginRef: ${name}`, `    weight: ${weight}`]),
    '  - pluginRef: max-score-picker',
    '',
  ].join('\n');
}

/** What the picker knows of a request and of a replica, by the names of policies and of the plugin. */
const FIELDS: Readonly<Record<string, string>> = {
  ...{ 'request.prompt_tokens': 'request.promptTokens', 'request.priority': 'request.priority' },
  'replica.num_requests_running': 'replica.running',
  'replica.num_requests_waiting': 'replica.waiting',
  'replica.kv_cache_usage_perc': 'replica.kvCacheUsage',
  'replica.prefix_match': 'replica.prefixMatch',
  'replica.prefix_match_tokens': 'replica.prefixMatchTokens',
  'replica.scrape_age': 'replica.scrapeAge',
  ...{ 'Math.min': 'min', 'Math.max': 'max', 'Math.exp': 'math.Exp', 'Math.log': 'math.Log' },
  ...{ 'Math.sqrt': 'math.Sqrt', 'Math.abs': 'math.Abs', 'Math.pow': 'math.Pow', Infinity: 'math.Inf(1)' },
};
const TOKEN = /\s+|[A-Za-z_$][\w$.]*|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?|\*\*|=>|[!=<>]=+|&&|\|\||./gi;

/**
 * A scorer plugin in Go. Of `score`, constants and arithmetic translate.
 * @param refuse throws with the reason why the function does not translate
 */
export async function scorerPlugin(
  score: Score,
  source: string,
  file: string,
  refuse: (reason: string) => never,
): Promise<string> {
  const text = score.toString().replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
  const [, parameters = '', block, expression = ''] =
    /^(?:score)?\s*\(([^)]*)\)\s*(?:=>)?\s*(?:\{([\s\S]*)\}|([\s\S]*))$/.exec(text) ?? [];
  const [request = 'request', replica = 'replica'] = parameters.split(',').map((name) => name.trim());
  const numbers = /\bparameters\b/.test(text) ? parametersOf(source, file) : [];
  const known = new Map<string, string>([
    ...numbers.map(({ name, value }) => [`parameters.${name}`, float(String(value))] as const),
    ...Object.entries(FIELDS).map(
      ([name, there]) => [name.replace(/^request\b/, request).replace(/^replica\b/, replica), there] as const,
    ),
  ]);
  const translated = (code: string) =>
    code
      .match(TOKEN)!
      .map((token) => {
        if (/^\s+$/.test(token)) return ' ';
        if (/^\d/.test(token)) return float(token);
        if (/^[-+*/(),]$/.test(token)) return token;
        const there = known.get(token);
        if (there !== undefined) return there;
        return refuse(`\`score\` has \`${token}\`, which the endpoint picker's plugin cannot have`);
      })
      .join('')
      .trim();
  const statements = (block ?? `return ${expression}`).split(';').map((each) => each.trim());
  const lines = statements.filter(Boolean).map((statement) => {
    const [, name, value] = /^const\s+([\w$]+)\s*=\s*([\s\S]*)$/.exec(statement) ?? [];
    if (name !== undefined) {
      const line = `\t${name} := ${translated(value)}`;
      known.set(name, name);
      return line;
    }
    const [, answer] = /^return\b([\s\S]*)$/.exec(statement) ?? [];
    if (answer === undefined)
      refuse(`\`score\` has a statement that is neither \`const\` nor \`return\`: ${statement.slice(0, 60)}`);
    return `\treturn ${translated(answer)}`;
  });
  const template = await readFile(new URL('./epp_scorer.go.txt', import.meta.url), 'utf8');
  return template.replaceAll('{{package}}', 'policyscorer').replace('{{score}}', () => lines.join('\n'));
}

/** A number that Go takes as one with a fraction. */
function float(text: string): string {
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}
