import { readFileSync } from 'node:fs';
import {
  type RecordedLoad,
  scheduleOnEngine,
  scheduleOnReference,
} from '../../packages/simulator/test/recorded-load.ts';
import { benchmark } from '../harness.ts';

interface Recording {
  readonly vllm: string;
  readonly kind: string;
  readonly seed: number;
}

export default benchmark({
  what: 'Loads with the same schedule as on the scheduler of vLLM: serves those that benchmarks/vllm/record_schedules.py recorded on our engine, or with `--reference` on that of the tests, with a law of 1 ms an iteration. `--show` so many that differ.',
  options: { show: 0, reference: false },
  arguments: 'FILE ...',
  *run({ show, reference }, positionals) {
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
        const ours = reference ? scheduleOnReference(parsed) : scheduleOnEngine(parsed);
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
