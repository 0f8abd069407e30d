import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import {
  type Candidate,
  candidateKey,
  KNOB_NAMES,
  type Knob,
  type KnobName,
  profileSpaceOf,
  TUNE_SPACE,
  vllmDefaults,
} from '../search/candidate.ts';
import { evenTraffic, fakeEvaluator } from '../search/measured.fixture.ts';
import { type SearchOptions, searchSettings } from './tune.ts';

const profile = findProfile('h100-80gb-llama-3-8b');
const defaults = vllmDefaults(profile);
const traffic = evenTraffic(8);

/** Values of these settings, all others at their defaults. */
function candidateSpace(
  of: typeof profile,
  {
    knobs,
    ...rest
  }: Omit<Parameters<typeof profileSpaceOf>[1], 'space'> & { readonly knobs: readonly Knob[] },
) {
  const names = Object.entries(KNOB_NAMES).filter(([, knob]) => knobs.includes(knob));
  const space = Object.fromEntries(names.map(([name]) => [name, TUNE_SPACE[name as KnobName]]));
  return profileSpaceOf(of, { space, ...rest }).values;
}

/** Searches settings whose capacity is given, from 32 candidates. */
async function search(
  knobs: readonly Knob[],
  capacityOf: (candidate: Candidate) => number,
  options: Partial<SearchOptions> = {},
) {
  const space = candidateSpace(profile, {
    ...{ knobs, minQuality: 0, hasPrefixes: true, hasClasses: true, mostReplicas: 2 },
  });
  const evaluator = fakeEvaluator((candidate, { blockStarts }) =>
    Array<number>(blockStarts.length - 1).fill(capacityOf(candidate)),
  );
  const how = { objective: 'goodput', start: 32, targetLoad: 1, ...options } as const;
  return searchSettings(evaluator, profile, space, traffic, how);
}

/** Falls off by a tenth for each doubling away from `best`. */
const near = (value: number, best: number) => 0.9 ** Math.abs(Math.log2(value / best));

describe('the search', () => {
  it('climbs from a few candidates to the best by steps to neighbours', async () => {
    const { ranked, considered } = await search(
      ['maxNumSeqs', 'maxNumBatchedTokens', 'kvBudgetFraction'],
      ({ maxNumSeqs, maxNumBatchedTokens, kvBudgetFraction }) =>
        4 * near(maxNumSeqs, 96) * near(maxNumBatchedTokens, 1024) * near(kvBudgetFraction, 0.5),
    );
    const { maxNumSeqs, maxNumBatchedTokens, kvBudgetFraction } = ranked[0].candidate;
    assert.deepEqual([maxNumSeqs, maxNumBatchedTokens, kvBudgetFraction], [96, 1024, 0.5]);
    assert.ok(Math.abs(ranked[0].score - 4) < 0.05, `${ranked[0].score}`);
    assert.ok(considered > 32);
    assert.ok(ranked.some(({ candidate }) => candidateKey(candidate) === candidateKey(defaults)));
  });

  it('tells of each candidate that is better than those before, as far as it is when it is interrupted', async () => {
    const told: number[] = [];
    let best = defaults;
    const capacityOf = ({ maxNumSeqs, maxNumBatchedTokens, kvBudgetFraction }: Candidate) =>
      4 * near(maxNumSeqs, 96) * near(maxNumBatchedTokens, 1024) * near(kvBudgetFraction, 0.5);
    const options: Partial<SearchOptions> = {
      onBest: ({ candidate, score }) => {
        told.push(score);
        best = candidate;
      },
      onStage: (stage) => {
        if (stage === 'the best side by side') throw new Error('interrupted');
      },
    };
    await assert.rejects(
      search(['maxNumSeqs', 'maxNumBatchedTokens', 'kvBudgetFraction'], capacityOf, options),
      /interrupted/,
    );
    assert.ok(told.length > 1);
    assert.deepEqual(
      told,
      told.toSorted((a, b) => a - b),
    );
    assert.deepEqual([best.maxNumSeqs, best.kvBudgetFraction], [96, 0.5]);
  });

  it('leaves what makes no difference at its default, and what costs less than a hundredth', async () => {
    const { ranked } = await search(
      ['maxNumSeqs', 'kvBudgetFraction', 'prefixCaching', 'speculationDepth'],
      ({ maxNumSeqs, kvBudgetFraction, speculationDepth }) =>
        (speculationDepth === 2 ? 2 : 1) *
        (maxNumSeqs === 1024 ? 0.995 : 1) *
        (kvBudgetFraction < 0.5 ? 0.5 : 1),
    );
    assert.deepEqual(ranked[0].candidate, { ...defaults, speculationDepth: 2 });
  });

  it('keeps a setting whose default costs more than a hundredth', async () => {
    const { ranked } = await search(
      ['maxNumSeqs', 'prefixCaching'],
      ({ maxNumSeqs }) => 2 * near(maxNumSeqs, 256),
    );
    assert.deepEqual(ranked[0].candidate, { ...defaults, maxNumSeqs: 256 });
  });

  it('tries nothing simpler than settings whose default costs more than a hundredth', async () => {
    const measured: Candidate[] = [];
    let stage = '';
    const { ranked } = await search(
      ['maxNumSeqs', 'maxNumBatchedTokens', 'kvBudgetFraction'],
      (candidate) => {
        if (stage === 'simpler settings') measured.push(candidate);
        const { maxNumSeqs, maxNumBatchedTokens, kvBudgetFraction } = candidate;
        return near(maxNumSeqs, 96) * near(maxNumBatchedTokens, 1024) * near(kvBudgetFraction, 0.5);
      },
      { onStage: (next) => (stage = next) },
    );
    const best = ranked[0].candidate;
    const changes = (candidate: Candidate) =>
      (Object.keys(best) as Knob[]).filter((knob) => candidate[knob] !== best[knob]).length;
    assert.ok(measured.length > 0 && measured.every((candidate) => changes(candidate) === 1));
  });

  it('ranks from the best to the worst', async () => {
    const { ranked } = await search(['maxNumSeqs'], ({ maxNumSeqs }) => near(maxNumSeqs, 64));
    // The first of those that are as good as the best has the fewest changes; the others follow by score.
    const scores = ranked.slice(1, 8).map(({ score }) => score);
    assert.deepEqual(
      scores,
      scores.toSorted((a, b) => b - a),
    );
  });

  it('for latency prefers the settings that answer soonest at the load that is asked for', async () => {
    const { ranked } = await search(['maxNumSeqs'], ({ maxNumSeqs }) => 4 * near(maxNumSeqs, 48), {
      objective: 'latency',
    });
    assert.equal(ranked[0].candidate.maxNumSeqs, 48);
    // Latencies are 100 ms x load / capacity, of a limit of 100 ms.
    assert.ok(Math.abs(ranked[0].score - 4) < 1e-9);
  });

  it('finds its way where a few stretches sustain far more than all of the traffic', async () => {
    const space = candidateSpace(profile, {
      ...{ knobs: ['maxNumSeqs'], minQuality: 0, hasPrefixes: false, hasClasses: false, mostReplicas: 1 },
    });
    const evaluator = fakeEvaluator(({ maxNumSeqs }, { blockStarts }) =>
      Array<number>(blockStarts.length - 1).fill((blockStarts.length === 3 ? 100 : 1) * near(maxNumSeqs, 96)),
    );
    const how = { objective: 'goodput', start: 32, targetLoad: 1 } as const;
    const { ranked } = await searchSettings(evaluator, profile, space, traffic, how);
    assert.equal(ranked[0].candidate.maxNumSeqs, 96);
    assert.ok(Math.abs(ranked[0].score - 1) < 0.02, `${ranked[0].score}`);
  });

  it('with a concurrency prefers what serves most a second to what holds most in flight', async () => {
    const space = candidateSpace(profile, {
      ...{ knobs: ['maxNumSeqs'], minQuality: 0, hasPrefixes: false, hasClasses: false, mostReplicas: 1 },
    });
    // The more sequences, the more in flight, and the longer each takes: 64 serve most.
    const evaluator = fakeEvaluator(
      ({ maxNumSeqs }, { blockStarts }) => Array<number>(blockStarts.length - 1).fill(maxNumSeqs / 256),
      ({ maxNumSeqs }, load) => load * (256 / maxNumSeqs) * near(maxNumSeqs, 64),
    );
    const how = { objective: 'goodput', start: 32, targetLoad: 1 } as const;
    const closed = { ...traffic, concurrency: 32 };
    const { ranked } = await searchSettings(evaluator, profile, space, closed, how);
    const [{ candidate, score, load }] = ranked;
    assert.equal(candidate.maxNumSeqs, 64);
    assert.ok(Math.abs(score - 1) < 0.02, `${score}`);
    assert.ok(Math.abs(load - 0.25) < 0.01, `${load}`);
  });

  it('ends where nothing meets the SLO', async () => {
    const { ranked } = await search(['maxNumSeqs'], () => 1e-6);
    assert.equal(ranked[0].score, 0);
  });
});
