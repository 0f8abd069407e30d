import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import {
  type CandidateSpace,
  candidateKey,
  candidateText,
  EXTRA_KNOBS,
  isPossible,
  KNOB_NAMES,
  type Knob,
  type KnobName,
  neighbours,
  profileSpaceOf,
  spaceFillingCandidates,
  TUNE_SPACE,
  vllmDefaults,
  withoutIdle,
} from './candidate.ts';

const h100 = findProfile('h100-80gb-llama-3-8b');
/** Values of these settings, all others at their defaults. */
function candidateSpace(
  profile: typeof h100,
  {
    knobs,
    ...rest
  }: Omit<Parameters<typeof profileSpaceOf>[1], 'space'> & { readonly knobs: readonly Knob[] },
) {
  const names = Object.entries(KNOB_NAMES).filter(([, knob]) => knobs.includes(knob));
  const space = Object.fromEntries(names.map(([name]) => [name, TUNE_SPACE[name as KnobName]]));
  return profileSpaceOf(profile, { space, ...rest }).values;
}

const limits = { minQuality: 0, hasPrefixes: true, hasClasses: true, mostReplicas: 2 };

describe('the defaults of vLLM', () => {
  it('are larger on GPUs of 70 GiB and more, but for A100', () => {
    const sizes = (profile: string) => {
      const { maxNumSeqs, maxNumBatchedTokens } = vllmDefaults(findProfile(profile));
      return [maxNumSeqs, maxNumBatchedTokens];
    };
    assert.deepEqual(sizes('h100-80gb-llama-3-8b'), [1024, 8192]);
    assert.deepEqual(sizes('a100-80gb-llama-3-70b-tp4'), [256, 2048]);
    assert.deepEqual(sizes('a100-40gb-llama-3-8b'), [256, 2048]);
  });
});

describe('a candidate', () => {
  it('is possible when an iteration holds a token of each sequence, and KV fits', () => {
    const candidate = { ...vllmDefaults(h100), maxNumSeqs: 512, maxNumBatchedTokens: 512 };
    assert.equal(isPossible(h100, candidate), true);
    assert.equal(isPossible(h100, { ...candidate, maxNumSeqs: 513 }), false);
    assert.equal(isPossible(h100, { ...candidate, kvBudgetFraction: 0 }), false);
  });

  it('is told by what differs from another', () => {
    const defaults = vllmDefaults(h100);
    const changed = { ...defaults, maxNumSeqs: 64, priority: true };
    assert.equal(candidateText(changed, defaults), 'max_num_seqs 64, priority on');
    assert.equal(candidateText(defaults, defaults), 'as vLLM’s defaults');
    assert.match(candidateText(defaults), /^max_num_seqs 1024, .*quantization FP16.*priority off$/);
  });
});

describe('the settings to choose from', () => {
  it('are those that were asked for, and the defaults of the others', () => {
    const space = candidateSpace(h100, { ...limits, knobs: ['weights', 'split'] });
    assert.deepEqual([space.maxNumSeqs, space.priority], [[1024], [false]]);
    assert.deepEqual(space.weights, ['FP16', 'FP8', 'INT8', 'INT4']);
    assert.deepEqual(space.split, [false, '1:1']);
  });

  it('hold weights of the least quality that is allowed', () => {
    const { quality } = h100.weights.INT8!;
    const of = (minQuality: number) =>
      candidateSpace(h100, { ...limits, minQuality, knobs: ['weights'] }).weights.includes('INT8');
    assert.deepEqual([of(quality), of(quality + 1e-9)], [true, false]);
  });

  it('hold no pairs for one engine, and no order of classes where there are none', () => {
    const one = candidateSpace(h100, {
      ...{ ...limits, knobs: ['split', 'priority'] as const, hasClasses: false, mostReplicas: 1 },
    });
    assert.deepEqual([one.split, one.priority], [[false], [false]]);
  });

  it('draft no tokens by batch size where vLLM does not: without a draft, and with data parallelism', () => {
    const shipped = findProfile('a100-80gb-llama-3-70b-tp4');
    const of = (profile: typeof shipped) =>
      candidateSpace(profile, { ...limits, knobs: ['speculationMaxBatch'] }).speculationMaxBatch.length;
    assert.deepEqual(
      [of(shipped), of({ ...shipped, speculation: null }), of({ ...shipped, parallel: { data: 2 } })],
      [9, 1, 1],
    );
  });
});

describe('settings that are searched only where they are named', () => {
  const space = candidateSpace(h100, { ...limits, knobs: Object.values(KNOB_NAMES) });
  const candidate = {
    ...{ ...vllmDefaults(h100), maxNumSeqs: 64, maxNumBatchedTokens: 512, speculationDepth: 2 },
    ...{ maxNumActiveSeqs: 32, longPrefillTokenThreshold: 256, longPrefillTokenThresholdAdaptive: true },
    speculationMaxBatch: 16,
  };

  it('stay where each has an effect', () => {
    assert.deepEqual(withoutIdle(space, candidate), candidate);
  });

  for (const [what, change, off] of [
    ['as many requests at once as sequences', { maxNumActiveSeqs: 64 }, { maxNumActiveSeqs: 0 }],
    [
      'chunks as large as the token budget',
      { longPrefillTokenThreshold: 512 },
      { longPrefillTokenThreshold: 0, longPrefillTokenThresholdAdaptive: false },
    ],
    ['drafts for all that may run', { speculationMaxBatch: 32 }, { speculationMaxBatch: 0 }],
    ['drafts of no tokens', { speculationDepth: 0 }, { speculationMaxBatch: 0 }],
  ] as const) {
    it(`go off without one: ${what}`, () => {
      const changed = { ...candidate, ...change };
      assert.deepEqual(withoutIdle(space, changed), { ...changed, ...off });
    });
  }

  it('are left as the engine was started where they are not searched', () => {
    const engine = {
      ...h100.engine,
      longPrefillTokenThreshold: 16_384,
      longPrefillTokenThresholdAdaptive: true,
    };
    const started = { ...h100, engine };
    const fixed: CandidateSpace = candidateSpace(started, { ...limits, knobs: ['maxNumSeqs'] });
    const defaults = vllmDefaults(started);
    assert.deepEqual(
      [defaults.longPrefillTokenThreshold, defaults.longPrefillTokenThresholdAdaptive],
      [16_384, true],
    );
    assert.deepEqual(withoutIdle(fixed, defaults), defaults);
  });

  it('are told only where they are on', () => {
    assert.doesNotMatch(candidateText(vllmDefaults(h100)), /active|threshold|batch 0/);
    assert.match(
      candidateText(candidate),
      /max_num_active_seqs 32, long_prefill_token_threshold 256, long_prefill_token_threshold_adaptive on, speculation_max_batch 16$/,
    );
  });
});

const profile = findProfile('h100-80gb-llama-3-8b');
const allowed = { minQuality: 0, hasPrefixes: true, hasClasses: true, mostReplicas: 8 };
/** Knobs that `tune` searches unless it is told otherwise. */
const knobs: readonly Knob[] = (Object.keys(KNOB_NAMES) as KnobName[])
  .filter((name) => !EXTRA_KNOBS.includes(name))
  .map((name) => KNOB_NAMES[name]);
const space = candidateSpace(profile, { knobs, ...allowed });

describe('the candidates to start from', () => {
  const candidates = spaceFillingCandidates(profile, space, 1024);

  it('are different, possible, and take every value of every setting about as often', () => {
    assert.equal(candidates.length, 1024);
    assert.equal(new Set(candidates.map(candidateKey)).size, 1024);
    for (const candidate of candidates) assert.ok(isPossible(profile, candidate));
    for (const knob of [
      'speculationDepth',
      'kvBudgetFraction',
      'weights',
      'prefixCaching',
      'split',
      'priority',
    ] as const) {
      const values: readonly unknown[] = space[knob];
      for (const value of values) {
        const times = candidates.filter((candidate) => candidate[knob] === value).length;
        const fair = 1024 / values.length;
        assert.ok(Math.abs(times - fair) < 0.2 * fair, `${knob} ${value}: ${times} of ${fair}`);
      }
    }
  });

  it('turn each of the extra knobs on and off, where they are asked for, and leave none on without effect', () => {
    const wide = candidateSpace(profile, { knobs: Object.values(KNOB_NAMES), ...allowed });
    const found = spaceFillingCandidates(profile, wide, 1024);
    assert.equal(new Set(found.map(candidateKey)).size, 1024);
    for (const candidate of found) assert.deepEqual(withoutIdle(wide, candidate), candidate);
    for (const name of EXTRA_KNOBS) {
      const on = found.filter((candidate) => candidate[KNOB_NAMES[name]]).length;
      assert.ok(on > 200 && on < 900, `${name}: ${on}`);
    }
    for (const candidate of found.slice(0, 50))
      assert.ok(!neighbours(profile, wide, candidate).map(candidateKey).includes(candidateKey(candidate)));
  });

  it('are all there are where the space is small', () => {
    const narrow = candidateSpace(profile, {
      knobs: ['speculationDepth'],
      minQuality: 0,
      hasPrefixes: false,
      hasClasses: false,
      mostReplicas: 1,
    });
    assert.equal(spaceFillingCandidates(profile, narrow, 1024).length, 9);
  });

  it('leave out weights that cost too much quality, and prefix caching where there are no prefixes', () => {
    const picky = candidateSpace(profile, {
      knobs,
      minQuality: 0.999,
      hasPrefixes: false,
      hasClasses: false,
      mostReplicas: 1,
    });
    assert.deepEqual(picky.weights, ['FP16', 'FP8']);
    assert.deepEqual(picky.prefixCaching, [true]);
  });
});

describe('the neighbours of a candidate', () => {
  it('are one step up and one step down of each number, and possible', () => {
    const candidate = { ...vllmDefaults(profile), maxNumSeqs: 256, maxNumBatchedTokens: 256 };
    const near = neighbours(profile, space, candidate);
    const valuesOf = (knob: Knob) =>
      near.map((other) => other[knob]).filter((value) => value !== candidate[knob]);
    // 384 sequences do not fit into 256 tokens.
    assert.deepEqual(valuesOf('maxNumSeqs'), [192]);
    assert.deepEqual(valuesOf('maxNumBatchedTokens'), [512]);
    assert.deepEqual(valuesOf('kvBudgetFraction'), [0.9]);
    assert.deepEqual(valuesOf('weights'), ['FP8', 'INT8', 'INT4']);
    const wider = neighbours(profile, space, { ...candidate, maxNumBatchedTokens: 1024 });
    assert.deepEqual(
      wider.map(({ maxNumSeqs }) => maxNumSeqs).filter((value) => value !== 256),
      [192, 384],
    );
  });

  it('differ from it in one setting', () => {
    const [candidate] = spaceFillingCandidates(profile, space, 1);
    const near = neighbours(profile, space, candidate!);
    assert.ok(near.length >= 8);
    for (const other of near) {
      const changed = knobs.filter((knob) => other[knob] !== candidate![knob]);
      assert.equal(changed.length, 1);
    }
  });
});
