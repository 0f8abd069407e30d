// Serves the loads that record_schedules.py recorded on our engine, with a law of 1 ms an iteration, and counts the loads
// with the schedule of vLLM: node benchmarks/vllm/compare-schedules.ts recorded.jsonl ... [--reference] [--show 3]
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import {
  type RecordedLoad,
  scheduleOnEngine,
  scheduleOnReference,
} from '../../packages/simulator/test/recorded-load.ts';

interface Recording {
  readonly vllm: string;
  readonly kind: string;
  readonly seed: number;
}

const { values, positionals } = parseArgs({
  options: { show: { type: 'string', default: '0' }, reference: { type: 'boolean', default: false } },
  allowPositionals: true,
});

interface Row extends Recording {
  loads: number;
  identicalLoads: number;
  requests: number;
  identicalRequests: number;
}

console.log('| vLLM | loads of kind | seed | loads | identical | requests | identical |');
console.log('|---|---|---:|---:|---:|---:|---:|');
for (const file of positionals) {
  let row: Row | null = null;
  let toShow = Number(values.show);
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line === '') continue;
    const parsed = JSON.parse(line) as Recording | RecordedLoad;
    if ('vllm' in parsed) {
      if (row !== null) print(row);
      row = { ...parsed, loads: 0, identicalLoads: 0, requests: 0, identicalRequests: 0 };
      toShow = Number(values.show);
      continue;
    }
    if (row === null) throw new Error(`Expected ${file} to begin with a line that names the version of vLLM`);
    const ours = values.reference ? scheduleOnReference(parsed) : scheduleOnEngine(parsed);
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
  if (row !== null) print(row);
}

function print({ vllm, kind, seed, loads, identicalLoads, requests, identicalRequests }: Row): void {
  console.log(`| ${[vllm, kind, seed, loads, identicalLoads, requests, identicalRequests].join(' | ')} |`);
}
