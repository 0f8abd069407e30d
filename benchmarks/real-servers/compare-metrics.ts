// Lists what one `/metrics` has and another lacks: series of `vllm:`, their types, labels and buckets.
// `npx node benchmarks/real-servers/compare-metrics.ts http://vllm:8000/metrics http://endpoint:8001/metrics`
interface Series {
  readonly type: string;
  readonly labels: ReadonlySet<string>;
  readonly buckets: ReadonlySet<number>;
}

const [, , real, ours] = process.argv;
if (real === undefined || ours === undefined) {
  throw new Error('expected the addresses of two /metrics, the real one first');
}
const [expected, found] = await Promise.all([real, ours].map(seriesOf));
let missing = 0;
for (const [name, { type, labels, buckets }] of expected) {
  const other = found.get(name);
  const complain = (what: string) => {
    missing += 1;
    console.log(`${name}: ${what}`);
  };
  if (other === undefined) complain('missing');
  else {
    if (other.type !== type) complain(`a ${other.type}, expected a ${type}`);
    const lacks = [...labels].filter((label) => !other.labels.has(label));
    if (lacks.length > 0) complain(`lacks the labels ${lacks.join(', ')}`);
    const bounds = [...buckets].filter((bound) => !other.buckets.has(bound));
    if (bounds.length > 0) complain(`lacks the buckets ${bounds.join(', ')}`);
  }
}
console.log(`${expected.size} series, ${missing} differences`);

async function seriesOf(address: string): Promise<Map<string, Series>> {
  const lines = (await (await fetch(address)).text()).split('\n');
  const series = new Map<string, Series>();
  for (const line of lines) {
    const [, name, type] = /^# TYPE (vllm:\S+) (\w+)$/.exec(line) ?? [];
    if (name === undefined) continue;
    const own = lines.filter((text) => new RegExp(`^${name}(_bucket|_sum|_count)?\\{`).test(text));
    const all = (pattern: RegExp) =>
      own.flatMap((text) => Array.from(text.matchAll(pattern), ([, value]) => value));
    series.set(name, {
      type,
      labels: new Set(all(/[{,](\w+)="/g)),
      buckets: new Set(all(/\ble="(\d[^"]*)"/g).map(Number)),
    });
  }
  return series;
}
