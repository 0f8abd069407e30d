import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Engine } from '../src/engine/engine.ts';
import type { EngineConfig } from '../src/engine/engine-config.ts';
import type { PromptPrefix } from '../src/engine/prefix-cache.ts';
import { TICKS_PER_MS } from '../src/engine/ticks.ts';
import { RandomStream } from '../src/random/counter-random.ts';
import { PromptChains } from '../src/simulation/prompt-chains.ts';
import { ReferenceEngine } from './reference-engine.ts';

interface Chain {
  readonly gapMs: number;
  readonly input: number;
  readonly output: number;
  readonly ids: readonly number[];
}

const CHUNK_TOKENS = 32;
const law = {
  ...{ baseUs: 4000, weightReadUs: 3000, perTokenUs: 60, perDecodeSequenceUs: 40 },
  ...{ perContextTokenNs: 90, perPrefillAttentionNs: 1 },
};

function configOf(kvBlocks: number): EngineConfig {
  return {
    ...{ law, maxNumSeqs: 8, kvBlocks, schedulingPolicy: 'fcfs', speculationDepth: 0 },
    ...{ speculation: null, survival: [] },
  };
}

/** Requests that go on from what others began: with all of it, with less of it, or with nothing. */
function growChains(random: RandomStream, requests: number, namesAnswers: boolean, spread: number): Chain[] {
  const chains: Chain[] = [];
  let nextId = 0;
  for (let i = 0; i < requests; i++) {
    const from = i === 0 || random.uniform() < 0.2 ? [] : chains[random.integer(0, i - 1)].ids;
    const kept = random.uniform() < 0.6 ? from.length : random.integer(0, from.length);
    const added = random.integer(1, 6);
    const ids = [...from.slice(0, kept), ...Array.from({ length: added }, () => spread * nextId++)];
    const output = random.integer(1, 150);
    const named = ids.length * CHUNK_TOKENS;
    // With the answer the ids reach behind the prompt; without it the last chunk may be cut short.
    const input = namesAnswers ? Math.max(1, named - random.integer(0, 60)) : named - random.integer(0, 31);
    chains.push({ gapMs: random.integer(0, 500), input, output, ids });
  }
  return chains;
}

function prefixesOf(chains: readonly Chain[], namesAnswers: boolean): [PromptPrefix, PromptPrefix][] {
  const offsets = new Int32Array(chains.length + 1);
  for (const [i, { ids }] of chains.entries()) offsets[i + 1] = offsets[i] + ids.length;
  const ids = Float64Array.from(chains.flatMap((chain) => chain.ids));
  const compressed = PromptChains.of({ blockTokens: CHUNK_TOKENS, ids, offsets, namesAnswers });
  return chains.map(({ ids: own, input, output }, i) => [
    compressed.prefixOf(i, input, output),
    {
      ...{ chunkTokens: CHUNK_TOKENS, ids: own },
      namedTokens: Math.min(own.length * CHUNK_TOKENS, namesAnswers ? input + output : input),
    },
  ]);
}

/** Serves the requests by chains and block by block. */
function serveBoth(chains: readonly Chain[], namesAnswers: boolean, kvBlocks: number) {
  const options = {
    ...{ blockTokens: 16, maxNumBatchedTokens: 128, prefixCaching: true, role: 'mixed' as const },
    ...{ seed: 0, requestOverheadMs: 0, requestOverheadJitter: 0 },
  };
  const fast = new Engine(configOf(kvBlocks), options);
  const plain = new ReferenceEngine(configOf(kvBlocks), options);
  let arrival = 0;
  for (const [id, [byChain, byBlock]] of prefixesOf(chains, namesAnswers).entries()) {
    const { gapMs, input, output } = chains[id];
    arrival += gapMs * TICKS_PER_MS;
    fast.submit({ id, arrival, input, output, prefix: byChain });
    plain.submit({ id, arrival, input, output, priority: 0, prefix: byBlock });
  }
  for (const engine of [fast, plain]) engine.runUntil(Number.POSITIVE_INFINITY);
  const { ids, firstTokens, lastTokens, count } = fast.completions;
  const completions = Array.from({ length: count }, (_, i) => ({
    ...{ id: ids[i], firstToken: firstTokens[i], lastToken: lastTokens[i] },
  }));
  const byId = <T extends { readonly id: number }>(all: readonly T[]) => all.toSorted((a, b) => a.id - b.id);
  assert.deepEqual(byId(completions), byId(plain.completions));
  const { cachedTokens, prefillTokens, preemptions } = fast.counters;
  assert.deepEqual([cachedTokens, prefillTokens], [plain.cachedTokens, plain.prefillTokens]);
  return { cachedTokens, prefillTokens, preemptions };
}

describe('prompts as chains of long chunks', () => {
  it('are served as block by block, to the tick', () => {
    let reused = 0;
    let preempted = 0;
    fc.assert(
      fc.property(
        fc.nat(),
        fc.integer({ min: 1, max: 40 }),
        fc.boolean(),
        fc.integer({ min: 24, max: 120 }),
        fc.constantFrom(1, 1000),
        (seed, requests, namesAnswers, kvBlocks, spread) => {
          const chains = growChains(new RandomStream(seed, 'chains'), requests, namesAnswers, spread);
          const { cachedTokens, preemptions } = serveBoth(chains, namesAnswers, kvBlocks);
          reused += Math.sign(cachedTokens);
          preempted += Math.sign(preemptions);
        },
      ),
      { numRuns: 300 },
    );
    assert.ok(reused > 150 && preempted > 10, `${reused} with reuse, ${preempted} with preemptions`);
  });

  for (const oversubscription of [0.7, 1, 1.5, 2, 4]) {
    it(`reuse what a cache of single blocks reuses at ${oversubscription} times its pool`, () => {
      for (const namesAnswers of [false, true]) {
        const chains = growChains(new RandomStream(3, 'pools'), 250, namesAnswers, 1);
        const distinct = new Set(chains.flatMap(({ ids }) => ids)).size * (CHUNK_TOKENS / 16);
        const { cachedTokens, prefillTokens } = serveBoth(
          chains,
          namesAnswers,
          Math.ceil(distinct / oversubscription),
        );
        assert.ok(cachedTokens > 0.1 * (cachedTokens + prefillTokens), `${cachedTokens} of ${prefillTokens}`);
      }
    });
  }

  it('are few where prompts go on from each other', () => {
    const ids = Array.from({ length: 500 }, (_, i) => i);
    const offsets = Int32Array.from({ length: 101 }, (_, i) => (5 * i * (i + 1)) / 2);
    const turns = Float64Array.from({ length: offsets[100] }, () => 0);
    for (let turn = 0; turn < 100; turn++) turns.set(ids.slice(0, 5 * (turn + 1)), offsets[turn]);
    const chains = PromptChains.of({ blockTokens: 16, ids: turns, offsets });
    const { ids: chunks, ends } = chains.prefixOf(99, 8000, 10);
    assert.deepEqual([...(chunks as Int32Array)], [0]);
    assert.deepEqual([...(ends as Int32Array)], [8000]);
  });
});
