import { benchmark } from '../harness.ts';

interface Series {
  readonly type: string;
  readonly labels: ReadonlySet<string>;
  readonly buckets: ReadonlySet<number>;
}

export default benchmark({
  what: 'What one `/metrics` has and another lacks: series of `vllm:`, their types, labels and buckets. REAL and OURS are addresses such as http://vllm:8000/metrics and http://endpoint:8001/metrics.',
  options: {},
  arguments: 'REAL OURS',
  async *run(_, [real, ours]) {
    if (real === undefined || ours === undefined)
      throw new Error('expected the addresses of two /metrics, the real one first');
    const [expected, found] = await Promise.all([real, ours].map(seriesOf));
    let missing = 0;
    for (const [series, { type, labels, buckets }] of expected) {
      const other = found.get(series);
      const lacking = other && {
        labels: [...labels].filter((label) => !other.labels.has(label)),
        buckets: [...buckets].filter((bound) => !other.buckets.has(bound)),
      };
      const differences = [
        ...(other === undefined ? ['missing'] : []),
        ...(other && other.type !== type ? [`a ${other.type}, expected a ${type}`] : []),
        ...Object.entries(lacking ?? {}).flatMap(([what, lacks]) =>
          lacks.length > 0 ? [`lacks the ${what} ${lacks.join(', ')}`] : [],
        ),
      ];
      missing += differences.length;
      for (const difference of differences) yield { series, difference };
    }
    yield `${expected.size} series, ${missing} differences`;
  },
});

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
