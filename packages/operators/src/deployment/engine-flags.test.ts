import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type EngineName, type LaunchSettings, writeFlags } from './engine-flags.ts';
import { readLaunch } from './launch.ts';

const size = fc.integer({ min: 2, max: 8 });
const share = fc.integer({ min: 50, max: 999 }).map((thousandths) => thousandths / 1000);
const word = fc.stringMatching(/^[A-Za-z][\w./ '"-]{0,11}$/);
const drafted = {
  speculationDepth: fc.integer({ min: 1, max: 8 }),
  draft: fc.record({ model: word, method: fc.constantFrom('eagle', 'eagle3') }),
};
/** Settings that both engines have flags for. */
const common = {
  weights: fc.constantFrom('FP8', 'INT8', 'INT4', 'MXFP4', 'NVFP4'),
  tensorParallel: size,
  dataParallel: size,
  pipelineParallel: size,
  maxNumSeqs: fc.integer({ min: 1, max: 512 }),
  maxNumBatchedTokens: fc.integer({ min: 512, max: 65_536 }),
  maxModelLen: fc.integer({ min: 1, max: 1_000_000 }),
  memoryShare: share,
  fp8KvCache: fc.constant(true),
  priority: fc.boolean(),
};
const flag = fc.boolean();
const vllm = {
  ...common,
  expertParallel: fc.constant(true),
  maxNumActiveSeqs: fc.integer({ min: 1, max: 512 }),
  kvBlocks: fc.integer({ min: 1, max: 1_000_000 }),
  kvOffloadingGiB: share,
  prefixCaching: flag,
  apiServerCount: size,
  longPrefillTokenThreshold: fc.integer({ min: 0, max: 65_536 }),
  longPrefillTokenThresholdAdaptive: fc.constant(true),
  watermark: share.map((value) => value / 2),
  wholePromptFits: flag,
  chunkedPrefill: flag,
  asyncScheduling: flag,
  maxCpuLoras: size,
  role: fc.constant('both'),
};
const sglang = {
  ...common,
  attentionParallel: fc.constant(true),
  prefixCaching: fc.constant(false),
  schedulerRecvInterval: fc.integer({ min: 1, max: 100 }),
  role: fc.constantFrom('prefill', 'decode'),
};

const tree = {
  draftCandidates: fc.integer({ min: 1, max: 8 }),
  verifyTokens: fc.integer({ min: 2, max: 64 }),
};

/** Settings of which any may be absent; a draft has a model and a depth, and in SGLang a tree. */
function settingsOf(
  engine: EngineName,
  parts: Record<string, fc.Arbitrary<unknown>>,
): fc.Arbitrary<LaunchSettings> {
  const draft = fc.option(fc.record(engine === 'SGLang' ? { ...drafted, ...tree } : drafted), {
    nil: undefined,
  });
  return fc
    .tuple(fc.record(parts, { requiredKeys: [] }), draft)
    .map(([settings, one]) => ({ ...settings, ...one }) as LaunchSettings);
}

describe('the flags of an engine', () => {
  for (const [engine, start, parts] of [
    ['vLLM', 'vllm serve ./own', vllm],
    ['SGLang', 'python -m sglang.launch_server --model-path ./own', sglang],
  ] as readonly [EngineName, string, Record<string, fc.Arbitrary<unknown>>][]) {
    it(`of ${engine} are read as they were written, and none is left out`, () => {
      fc.assert(
        fc.property(settingsOf(engine, parts), (settings) => {
          const line = [start, ...writeFlags(engine, settings)].join(' ');
          const launch = readLaunch(line, 'test');
          // SGLang writes the GPUs of a group, also of one.
          const { tensorParallel = settings.attentionParallel ? 1 : undefined } = settings;
          // A token budget is that of an iteration with decodes where chunks are mixed into them.
          const { maxNumBatchedTokens, speculationDepth } = settings;
          const isMixed =
            engine === 'SGLang' && maxNumBatchedTokens !== undefined && speculationDepth === undefined;
          const prefillFirst = isMixed ? false : undefined;
          const expected = JSON.parse(JSON.stringify({ ...settings, tensorParallel, prefillFirst }));
          assert.deepEqual(launch.settings, expected, line);
          assert.deepEqual(launch.notSimulated, []);
        }),
      );
    });
  }
});
