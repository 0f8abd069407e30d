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
  what: "Loads with the same schedule as on the scheduler of vLLM: serves those that benchmarks/vllm/record_schedules.py recorded on our engine, or with `--reference` on that of the tests, with a law of 1 ms an iteration. `--policy` orders our queue, as a scheduler of `servegym policy export --to vllm` that recorded them ordered vLLM's. `--show` so many that differ.",
  options: { show: 0, reference: false, policy: text },
  arguments: 'FILE ...',
  async *run({ show, reference, policy }, positionals) {
    const functions = policy === undefined ? undefined : startPolicy(await importPolicy(policy));
    const order: Parameters<typeof scheduleOnEngine>[2] =
      functions &&
      ((queue, tick) => new PolicyRun(functions).ordered(functions.order!, queue, tick / TICKS_PER_S));
    for (const file of positionals) {
      let row: ReturnType<typeof countsOf> | null = null;
      let toShow = show;
      for (const line of readFileSync(file, 'utf8').split('\n')) {
        if (line === '') continue;
        const parsed = JSON.parse(line) as Recording | RecordedLoad;
        if ('vllm' in parsed) {
          if (row !== null) yield row;
          row = countsOf(parsed);
          toShow = show;
          continue;
        }
        if (row === null)
          throw new Error(`Expected ${file} to begin with a line that names the version of vLLM`);
        const ours = reference ? scheduleOnReference(parsed) : scheduleOnEngine(parsed, 'all', order);
        const differing = parsed.tokens_ms.flatMap(([first, last], id) =>
          ours.tokens_ms[id][0] === first && ours.tokens_ms[id][1] === last ? [] : [id],
        );
        row.loads++;
        row.requests += parsed.requests.length;
        row['identical requests'] += parsed.requests.length - differing.length;
        const same = differing.length === 0 && ours.totals.every((total, i) => total === parsed.totals[i]);
        if (same) row['identical loads']++;
        else if (toShow-- > 0) {
          console.error(line);
          for (const id of differing.slice(0, 1)) {
            console.error(`request ${id}: ${parsed.tokens_ms[id]} ms in vLLM, ${ours.tokens_ms[id]} ms here`);
          }
          console.error(
            `iterations, preemptions, cached tokens: ${parsed.totals} in vLLM, ${ours.totals} here\n`,
          );
        }
      }
      if (row !== null) yield row;
    }
  },
});

/** Figures of a recording before its first load. */
function countsOf({ vllm: vLLM, kind, seed }: Recording) {
  const counts = { loads: 0, 'identical loads': 0, requests: 0, 'identical requests': 0 };
  return { vLLM, 'loads of kind': kind, seed, ...counts };
}
