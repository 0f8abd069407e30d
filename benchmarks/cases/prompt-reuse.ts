import { join } from 'node:path';
import { readTrace } from '@servegym/operators/traces';
import { Engine, PromptChains, TICKS_PER_MS } from '@servegym/simulator';
import { ReferenceEngine } from '../../packages/simulator/test/reference-engine.ts';
import { benchmark, required } from '../harness.ts';

const OVERSUBSCRIPTIONS = [0.7, 1, 1.5, 2, 4];
const BLOCK_TOKENS = 16;
/** About Llama-3-8B on an H200. */
const LAW = {
  ...{ baseUs: 1500, weightReadUs: 3600, perTokenUs: 24, perDecodeSequenceUs: 10 },
  ...{ perContextTokenNs: 36, perPrefillAttentionNs: 0.7 },
};
const OPTIONS = {
  ...{ blockTokens: BLOCK_TOKENS, maxNumBatchedTokens: 8192, prefixCaching: true, role: 'mixed' as const },
  ...{ seed: 0, requestOverheadMs: 0, requestOverheadJitter: 0 },
};

export default benchmark({
  what: "Share of the prompt tokens that the prefix cache has: the engine, which keeps neighbouring blocks as one chunk, beside the tests' reference engine, which counts single blocks. The first requests of Mooncake's conversation trace and of the Claude Code sessions in `--data FOLDER` (docs/reference-data.md), at their recorded times, on pools that the distinct blocks of their prompts fill 0.7 to 4 times. A pool that the longest request does not fit is made large enough for it.",
  options: { data: required, requests: 200 },
  async *run({ data, requests }) {
    for (const [name, path] of [
      ['Mooncake conversation', 'traces/mooncake-conversation.jsonl'],
      ['sessions of Claude Code', 'traces/claude-code-sessions'],
    ] as const) {
      const { trace } = await readTrace(join(data, path));
      const { arrivalMs, inputTokens, outputTokens, prefixBlocks } = trace;
      if (prefixBlocks === undefined)
        throw new Error(`${path}: expected a trace with the blocks of its prompts`);
      const { ids, offsets, blockTokens, namesAnswers = false } = prefixBlocks;
      const order = [...arrivalMs.keys()].sort((a, b) => arrivalMs[a] - arrivalMs[b]).slice(0, requests);
      const chains = PromptChains.of(prefixBlocks);
      const distinct = new Set(order.flatMap((at) => [...ids.slice(offsets[at], offsets[at + 1])])).size;
      const longest = Math.max(...order.map((at) => inputTokens[at] + outputTokens[at]));
      for (const oversubscription of OVERSUBSCRIPTIONS) {
        const kvBlocks = Math.ceil(
          Math.max((distinct * blockTokens) / oversubscription, longest + BLOCK_TOKENS) / BLOCK_TOKENS,
        );
        const config = {
          ...{ law: LAW, maxNumSeqs: 256, kvBlocks, schedulingPolicy: 'fcfs' as const },
          ...{ speculationDepth: 0, speculation: null, survival: [] },
        };
        const fast = new Engine(config, OPTIONS);
        const plain = new ReferenceEngine(config, OPTIONS);
        for (const [id, at] of order.entries()) {
          const [input, output] = [inputTokens[at], outputTokens[at]];
          const request = { id, arrival: Math.round(arrivalMs[at] * TICKS_PER_MS), input, output };
          fast.submit({ ...request, prefix: chains.prefixOf(at, input, output) });
          const byBlock = {
            ...{ chunkTokens: blockTokens, ids: ids.slice(offsets[at], offsets[at + 1]) },
            namedTokens: Math.min(
              (offsets[at + 1] - offsets[at]) * blockTokens,
              namesAnswers ? input + output : input,
            ),
          };
          plain.submit({ ...request, priority: 0, prefix: byBlock });
        }
        const cachedPercent = [fast, plain].map((engine) => {
          engine.runUntil(Number.POSITIVE_INFINITY);
          const { cachedTokens, prefillTokens } = engine instanceof Engine ? engine.counters : engine;
          return (100 * cachedTokens) / (cachedTokens + prefillTokens);
        });
        yield {
          trace: name,
          requests: order.length,
          'distinct blocks over the pool': (distinct * blockTokens) / (kvBlocks * BLOCK_TOKENS),
          'engine, cached %': cachedPercent[0],
          'single blocks, cached %': cachedPercent[1],
          'difference, points': cachedPercent[0] - cachedPercent[1],
        };
      }
    }
  },
});
