import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  compactProfiles,
  expandProfile,
  findProfile,
  listLastingProfiles,
  listProfiles,
} from '../data/catalog.ts';
import { parseEngineProfile } from './parse-engine-profile.ts';
import { ProfileError } from './read-json.ts';

const good = findProfile('a100-40gb-llama-3-8b');

/** The good profile with one field, given by its path, replaced or (with `undefined`) taken out. */
function changed(path: string, value: unknown): string {
  const copy = structuredClone(good) as unknown as Record<string, unknown>;
  const keys = path.split('.');
  const last = keys.pop()!;
  const parent = keys.reduce((object, key) => object[key] as Record<string, unknown>, copy);
  parent[last] = value;
  return JSON.stringify(copy);
}

describe('an engine profile', () => {
  it('survives being written and read', () => {
    assert.deepEqual(parseEngineProfile(JSON.stringify(good), 'x.json'), good);
  });

  it('keeps the settings of the scheduler', () => {
    const engine = {
      ...{ name: 'vLLM', version: '0.32', asyncScheduling: false, watermark: 0.01, wholePromptFits: false },
      ...{ longPrefillTokenThreshold: 512, longPrefillTokenThresholdAdaptive: true, drafter: 'eagle' },
      speculationDepthPerBatchSize: [
        [1, 16, 3],
        [33, 64, 1],
      ],
    };
    assert.deepEqual(parseEngineProfile(changed('engine', engine), 'x.json').engine, engine);
  });

  it('keeps the front end', () => {
    const frontEnd = { processes: 2, perRequestMs: 2.5, perPromptTokenUs: 0, perOutputTokenUs: 76 };
    assert.deepEqual(parseEngineProfile(changed('frontEnd', frontEnd), 'x.json').frontEnd, frontEnd);
  });

  it('keeps the division over GPUs', () => {
    const parallel = { data: 2, expert: 4 };
    const divided = { ...good, gpu: { ...good.gpu, count: 4 }, parallel };
    assert.deepEqual(parseEngineProfile(JSON.stringify(divided), 'x.json').parallel, parallel);
  });

  const refused: readonly [path: string, value: unknown][] = [
    ['name', 'Not A Name'],
    ['gpu', null],
    ['engine.drafter', 'medusa'],
    ['engine.speculationDepthPerBatchSize', [[2, 16, 3]]],
    [
      'engine.speculationDepthPerBatchSize',
      [
        [1, 16, 3],
        [16, 20, 1],
      ],
    ],
    ['gpu.memoryGiB', -40],
    ['gpu.count', 1.5],
    ['parallel', { data: 2 }],
    ['parallel', { expert: 0 }],
    ['parallel', { tensor: 1 }],
    ['model.kvBytesPerToken', 0],
    ['status', 'guessed'],
    ['fit.rows', 0],
    ['validity.batch', [64, 1]],
    ['validity.batch', [1]],
    ['memory.utilization', 1.5],
    ['memory.blockTokens', 0],
    ['memory.blockTokens', 24],
    ['requestOverheadMs', undefined],
    ['requestOverheadMs', '5'],
    ['reloadSeconds', -1],
    ['hostCheckpoints', { linkGBps: 0, wakeSeconds: 0.5 }],
    ['hostCheckpoints', { linkGBps: 25 }],
    ['hostCheckpoints', { linkGBps: 25, wakeSeconds: 0.5, other: 1 }],
    ['weights', {}],
    ['weights.FP16.law.baseUs', -1],
    ['weights.FP16.law.weightReadUs', 0],
    ['weights.FP16.law.perTokenUs', 1e12],
    ['weights.FP16.law.perContextTokenNs', null],
    ['weights.FP16.law.manySequences', { above: 0, perContextTokenNs: 1 }],
    ['weights.FP16.law.experts', { count: 8, perToken: 9, readUs: 1 }],
    ['weights.FP16.law.experts', { count: 8, perToken: 2 }],
    ['weights.FP16.law.launchBound', 'yes'],
    ['weights.FP16.law.tokenFactors', []],
    [
      'weights.FP16.law.tokenFactors',
      [
        [8, 1],
        [8, 2],
      ],
    ],
    ['weights.FP16.law.tokenFactors', [[1.5, 1]]],
    ['weights.FP16.law.sequenceFactors', [[1, 0]]],
    ['weights.FP16.law.prefillLaunchUs', -1],
    ['engine.asyncScheduling', 'yes'],
    ['engine.watermark', 1],
    ['engine.longPrefillTokenThreshold', 1.5],
    ['requestOverheadJitter', 1.5],
    ['requestOverheadPerTokenUs', -1],
    ['frontEnd', { processes: 1 }],
    ['frontEnd', { processes: 0, perRequestMs: 1, perPromptTokenUs: 1, perOutputTokenUs: 1 }],
    ['frontEnd', { processes: 1, perRequestMs: 1, perPromptTokenUs: -1, perOutputTokenUs: 1 }],
    ['weights.INT8.quality', 1.1],
    ['weights.INT8.source', ''],
    ['speculation.survival.sharegpt', [0.5, 0.6]],
    ['speculation.survival.sharegpt', []],
    ['transfer.gigabytesPerSecond', 0],
    ['hostKv', { sizeGiB: -1, gigabytesPerSecond: 25 }],
    ['hostKv', { sizeGiB: 64 }],
  ];
  for (const [path, value] of refused) {
    it(`is refused with ${JSON.stringify(value) ?? 'nothing'} for ${path}, which the error names`, () => {
      assert.throws(
        () => parseEngineProfile(changed(path, value), 'bad.json'),
        (error) => {
          assert.ok(error instanceof ProfileError, String(error));
          assert.equal(error.code, 'PROFILE_FIELD');
          assert.ok(error.field.startsWith(path), error.field);
          assert.match(error.message, /^bad\.json: expected `[\w.]+` to be .+, got .+/);
          return true;
        },
      );
    });
  }

  it('is refused with a field that nobody knows, which would be a slip of the pen', () => {
    assert.throws(() => parseEngineProfile(changed('memory.utilisation', 0.9), 'x.json'), {
      code: 'PROFILE_FIELD',
      field: 'memory.utilisation',
    });
  });

  it('is refused when it is no JSON', () => {
    assert.throws(() => parseEngineProfile('{', 'x.json'), { name: 'ProfileError', code: 'PROFILE_SYNTAX' });
  });

  it('answers any JSON with a ProfileError', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        assert.throws(() => parseEngineProfile(text, 'x.json'), ProfileError);
      }),
    );
  });
});

describe('the catalog', () => {
  it('data: holds valid profiles, sorted by names that tell what they are', () => {
    const profiles = listProfiles();
    const names = profiles.map(({ name }) => name);
    assert.deepEqual(names, names.toSorted());
    for (const profile of profiles) {
      const { name, gpu, status, fit } = profile;
      assert.deepEqual(parseEngineProfile(JSON.stringify(profile), name), profile);
      assert.ok(name.startsWith(gpu.name.toLowerCase()), name);
      assert.equal(/-tp\d+/.exec(name)?.[0] ?? '-tp1', `-tp${gpu.count}`);
      assert.equal(fit !== null, status !== 'estimated', name);
    }
  });

  it('data: has 150 generated profiles at least, in less than 1 MB', () => {
    const lasting = new Set(listLastingProfiles().map(({ name }) => name));
    const generated = listProfiles().filter(({ name }) => !lasting.has(name));
    assert.ok(generated.length >= 150, String(generated.length));
    assert.equal(new Set(listProfiles().map(({ name }) => name)).size, listProfiles().length);
    assert.ok(statSync(join(import.meta.dirname, '../data/generated-profiles.json')).size < 1e6);
    for (const gpu of ['L40S', 'A100', 'H100', 'H200', 'B200', 'RTX-PRO-6000'])
      assert.ok(generated.filter((profile) => profile.gpu.name.startsWith(gpu)).length >= 15, gpu);
    for (const model of [
      'Llama-3-70B',
      'Qwen3-30B-A3B',
      'Qwen3-235B-A22B',
      'gpt-oss-120b',
      'DeepSeek-R1',
      'MiniMax-M2.5',
      'Qwen3.5-397B-A17B',
      'GLM-5',
    ])
      assert.ok(
        generated.some((profile) => profile.model.name === model),
        model,
      );
  });

  it('gives back what was made compact', () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,8}$/), { minLength: 1, maxLength: 6 });
    const parts = fc.constantFrom<unknown>(
      { law: { baseUs: 1, weightReadUs: 2 }, status: 'estimated' },
      ['a long text of some words', 1, null],
      'a long text of some words',
      { nested: { law: { baseUs: 1, weightReadUs: 2 }, fit: null } },
    );
    fc.assert(
      fc.property(names, fc.infiniteStream(parts), (all, values) => {
        const profiles = all.map((name) => ({ name, of: values.next().value, and: [values.next().value] }));
        const { shared, profiles: entries } = compactProfiles(profiles);
        assert.deepEqual(
          entries.map((entry) => expandProfile(entry, shared)),
          profiles,
        );
      }),
    );
  });

  it('proposes the closest names for one that it does not have', () => {
    assert.throws(() => findProfile('A100-40G-lama-3-8b'), {
      name: 'ProfileError',
      code: 'PROFILE_UNKNOWN',
      message: /a100-40gb-llama-3-8b/,
    });
  });
});
