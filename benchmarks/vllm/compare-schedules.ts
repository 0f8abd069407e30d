// Serves the loads that record_schedules.py recorded on our engine, with a law of 1 ms an iteration, and counts the loads
// whose requests all have their first and last token in the same iteration as in vLLM:
// node benchmarks/vllm/compare-schedules.ts recorded.json ... [--show 3]
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Engine, type IterationLaw, type SchedulingPolicy, TICKS_PER_MS } from '@servegym/simulator';

interface RecordedLoad {
  readonly max_num_seqs: number;
  readonly max_num_batched_tokens: number;
  readonly kv_blocks: number;
  /** Arrival in ms, prompt tokens, output tokens, priority. */
  readonly requests: readonly (readonly [number, number, number, number])[];
  /** First and last token of each request, ms. */
  readonly tokens_ms: readonly (readonly [number, number])[];
}

interface Recording {
  readonly vllm: string;
  readonly policy: SchedulingPolicy;
  readonly prefix_caching: boolean;
  readonly block_tokens: number;
  readonly seed: number;
  readonly loads: readonly RecordedLoad[];
}

const { values, positionals } = parseArgs({
  options: { show: { type: 'string', default: '0' } },
  allowPositionals: true,
});

const LAW: IterationLaw = {
  baseUs: 1000,
  weightReadUs: 0,
  perTokenUs: 0,
  perDecodeSequenceUs: 0,
  perContextTokenNs: 0,
  perPrefillAttentionNs: 0,
};

/** First and last token of each request on our engine, ms. */
function serve(recording: Recording, load: RecordedLoad): (readonly [number, number])[] {
  const engine = new Engine(
    {
      law: LAW,
      maxNumSeqs: load.max_num_seqs,
      kvBlocks: load.kv_blocks,
      schedulingPolicy: recording.policy,
      speculationDepth: 0,
      speculation: null,
      survival: [],
    },
    {
      blockTokens: recording.block_tokens,
      maxNumBatchedTokens: load.max_num_batched_tokens,
      prefixCaching: recording.prefix_caching,
    },
  );
  for (const [id, [arrivalMs, input, output, priority]] of load.requests.entries()) {
    engine.submit({ id, arrival: arrivalMs * TICKS_PER_MS, input, output, priority });
  }
  engine.runUntil(Number.POSITIVE_INFINITY);
  const { count, ids, firstTokens, lastTokens } = engine.completions;
  const times: (readonly [number, number])[] = [];
  for (let i = 0; i < count; i++) {
    times[ids[i]] = [firstTokens[i] / TICKS_PER_MS, lastTokens[i] / TICKS_PER_MS];
  }
  return times;
}

console.log('| vLLM | policy | prefix caching | seed | loads | identical | requests | identical |');
console.log('|---|---|---|---:|---:|---:|---:|---:|');
for (const file of positionals) {
  const recording = JSON.parse(readFileSync(file, 'utf8')) as Recording;
  let identicalLoads = 0;
  let requests = 0;
  let identicalRequests = 0;
  let toShow = Number(values.show);
  for (const [index, load] of recording.loads.entries()) {
    const ours = serve(recording, load);
    const differing = load.tokens_ms.flatMap(([first, last], id) =>
      ours[id]?.[0] === first && ours[id]?.[1] === last ? [] : [id],
    );
    requests += load.requests.length;
    identicalRequests += load.requests.length - differing.length;
    if (differing.length === 0) identicalLoads++;
    else if (toShow-- > 0) {
      const id = differing[0];
      console.error(
        `${file}, load ${index}: request ${id} has its tokens at ${load.tokens_ms[id]} ms in vLLM, at ${ours[id]} ms here`,
      );
    }
  }
  const { vllm, policy, prefix_caching, seed, loads } = recording;
  const cells = [
    vllm,
    policy,
    prefix_caching ? 'on' : 'off',
    seed,
    loads.length,
    identicalLoads,
    requests,
    identicalRequests,
  ];
  console.log(`| ${cells.join(' | ')} |`);
}
