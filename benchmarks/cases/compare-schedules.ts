import { readFileSync } from 'node:fs';
import {
  type RecordedLoad,
  scheduleOnEngine,
  scheduleOnReference,
} from '../../packages/simulator/test/recorded-load.ts';
import { benchmark, type Row } from '../harness.ts';

interface Recording {
  readonly vllm: string;
  readonly kind: string;
  readonly seed: number;
}

interface Counted extends Recording {
  loads: number;
  identicalLoads: number;
  requests: number;
  identicalRequests: number;
}

export default benchmark({
  what: 'Loads with the same schedule as on the scheduler of vLLM: serves those that benchmarks/vllm/record_schedules.py recorded on our engine, or with `--reference` on that of the tests, with a law of 1 ms an iteration. `--show` so many that differ.',
  options: { show: 0, reference: false },
  arguments: 'FILE ...',
  *run({ show, reference }, positionals) {
    for (const file of positionals) {
      let row: Counted | null = null;
      let toShow = show;
      for (const line of readFileSync(file, 'utf8').split('\n')) {
        if (line === '') continue;
        const parsed = JSON.parse(line) as Recording | RecordedLoad;
        if ('vllm' in parsed) {
          if (row !== null) yield figuresOf(row);
          row = { ...parsed, loads: 0, identicalLoads: 0, requests: 0, identicalRequests: 0 };
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
        row.identicalRequests += parsed.requests.length - differing.length;
        const same = differing.length === 0 && ours.totals.every((total, i) => total === parsed.totals[i]);
        if (same) row.identicalLoads++;
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
      if (row !== null) yield figuresOf(row);
    }
  },
});

function figuresOf({ vllm, kind, seed, loads, identicalLoads, requests, identicalRequests }: Counted): Row {
  return {
    vLLM: vllm,
    'loads of kind': kind,
    seed,
    loads,
    'identical loads': identicalLoads,
    requests,
    'identical requests': identicalRequests,
  };
}
