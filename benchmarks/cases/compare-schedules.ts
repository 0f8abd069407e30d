import { readFileSync } from 'node:fs';
import { PolicyRun, startPolicy, TICKS_PER_S } from '@servegym/simulator';
import { importPolicy } from '../../packages/servegym/src/cli/policy/import-policy.ts';
import {
  type RecordedLoad,
  scheduleOnEngine,
  scheduleOnReference,
} from '../../packages/simulator/test/recorded-load.ts';
import { benchmark, text } from '../harness.ts';

interface Recording {
  readonly vllm: string;
  readonly kind: string;
  readonly seed: number;
}

export default benchmark({
  what: "Loads with the same schedule as on the scheduler of vLLM: serves those that benchmarks/vllm/record_schedules.py recorded on our engine, or with `--reference` on that of the tests, with a law of 1 ms an iteration. `--policy` orders our queue, as a scheduler of `servegym policy export --to vllm` that recorded them ordered vLLM's.",
  options: { reference: false, policy: text },
  arguments: 'FILE ...',
  async *run({ reference, policy }, positionals) {
    const functions = policy === undefined ? undefined : startPolicy(await importPolicy(policy));
    const order: Parameters<typeof scheduleOnEngine>[2] =
      functions &&
      ((queue, tick) => new PolicyRun(functions).ordered(functions.order!, queue, tick / TICKS_PER_S));
    for (const file of positionals) {
      let row: ReturnType<typeof countsOf> | null = null;
      for (const line of readFileSync(file, 'utf8').split('\n')) {
        if (line === '') continue;
        const parsed = JSON.parse(line) as Recording | RecordedLoad;
        if ('vllm' in parsed) {
          if (row !== null) yield row;
          row = countsOf(parsed);
          continue;
        }
        if (row === null)
          throw new Error(`Expected ${file} to begin with a line that names the version of vLLM`);
        const ours = reference ? scheduleOnReference(parsed) : scheduleOnEngine(parsed, 'all', order);
        const same = parsed.tokens_ms.filter(
          ([first, last], id) => ours.tokens_ms[id][0] === first && ours.tokens_ms[id][1] === last,
        ).length;
        const { length } = parsed.requests;
        row.loads++;
        row.requests += length;
        row['identical requests'] += same;
        if (same === length && ours.totals.every((total, i) => total === parsed.totals[i]))
          row['identical loads']++;
      }
      if (row !== null) yield row;
    }
  },
});

function countsOf({ vllm: vLLM, kind, seed }: Recording) {
  const counts = { loads: 0, 'identical loads': 0, requests: 0, 'identical requests': 0 };
  return { vLLM, 'loads of kind': kind, seed, ...counts };
}
