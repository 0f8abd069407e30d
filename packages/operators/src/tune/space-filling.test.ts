import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import {
  candidateKey,
  candidateSpace,
  EXTRA_KNOBS,
  isPossible,
  KNOB_NAMES,
  type Knob,
  type KnobName,
  vllmDefaults,
  withoutIdle,
} from './candidate.ts';
import { neighbours, spaceFillingCandidates } from './space-filling.ts';

const profile = findProfile('h100-80gb-llama-3-8b');
const limits = { minQuality: 0, hasPrefixes: true, hasClasses: true, mostReplicas: 8 };
/** Knobs that `tune` searches unless it is told otherwise. */
const knobs: readonly Knob[] = (Object.keys(KNOB_NAMES) as KnobName[])
  .filter((name) => !EXTRA_KNOBS.includes(name))
  .map((name) => KNOB_NAMES[name]);
const space = candidateSpace(profile, { knobs, ...limits });

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
    const wide = candidateSpace(profile, { knobs: Object.values(KNOB_NAMES), ...limits });
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
