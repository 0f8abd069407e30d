import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { listProfiles, parseEngineProfile } from '@servegym/profiles';
import fc from 'fast-check';
import { ROUTER_POLICIES } from '../src/policy/built-in.ts';
import type { EngineProfile, IterationLaw } from '../src/profiles/engine-profile.ts';
import { simulateTrace } from '../src/simulation/simulate-trace.ts';
import type { SimulationOptions } from '../src/simulation/simulation-options.ts';
import type { SimulationRun } from '../src/simulation/simulation-run.ts';
import type { Trace } from '../src/traces/trace.ts';
import { fixtureProfile } from './profile-fixture.ts';

/** From `low` to `high`, all magnitudes alike. */
const magnitude = (low: number, high: number) =>
  fc
    .double({ min: Math.log(low), max: Math.log(high), noNaN: true })
    .map((log) => Math.min(high, Math.exp(log)));

const law = fc.record<IterationLaw>({
  baseUs: fc.oneof(fc.constant(0), magnitude(0.001, 60e6)),
  launchBound: fc.option(fc.boolean(), { nil: undefined }),
  weightReadUs: magnitude(0.001, 60e6),
  perTokenUs: magnitude(0.000_001, 60e6),
  perDecodeSequenceUs: fc.oneof(fc.constant(0), magnitude(0.001, 60e6)),
  perContextTokenNs: fc.oneof(fc.constant(0), magnitude(0.001, 60e6)),
  perPrefillAttentionNs: fc.oneof(fc.constant(0), magnitude(0.001, 60e6)),
});

/** Profiles that `parseEngineProfile` accepts, however unlikely, and the profiles that come with the simulator. */
const profile: fc.Arbitrary<EngineProfile> = fc.oneof(
  fc.constantFrom(...listProfiles()),
  fc
    .record({
      law,
      kvBytesPerToken: magnitude(1024, 2 ** 20).map(Math.round),
      blockTokens: fc.constantFrom(1, 16, 256),
      requestOverheadMs: fc.oneof(fc.constant(0), magnitude(0.001, 10_000)),
      requestOverheadJitter: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    .map(({ law, kvBytesPerToken, blockTokens, ...overhead }) => {
      const { model, memory, weights } = fixtureProfile;
      const drawn = {
        ...fixtureProfile,
        ...overhead,
        model: { ...model, kvBytesPerToken },
        memory: { ...memory, blockTokens },
        weights: { FP16: { ...weights.FP16!, law } },
      };
      return parseEngineProfile(JSON.stringify(drawn), 'drawn');
    }),
);

const trace: fc.Arbitrary<Trace> = fc
  .array(
    fc.record({
      gapMs: fc.oneof(fc.constant(0), magnitude(0.001, 1e7)),
      input: magnitude(1, 200_000).map(Math.round),
      output: magnitude(1, 5000).map(Math.round),
    }),
    { minLength: 1, maxLength: 40 },
  )
  .map((requests) => {
    let at = 0;
    return {
      source: 'drawn',
      arrivalMs: Float64Array.from(requests, ({ gapMs }) => {
        at += gapMs;
        return at;
      }),
      inputTokens: Int32Array.from(requests, ({ input }) => input),
      outputTokens: Int32Array.from(requests, ({ output }) => output),
    };
  });

const options = fc.record({
  maxNumSeqs: fc.constantFrom(1, 3, 64, 256),
  maxNumBatchedTokens: fc.constantFrom(256, 2048, 16_384),
  kvBudgetFraction: fc.constantFrom(0.02, 0.3, 1),
  speculationDepth: fc.constantFrom(0, 0, 1, 3, 8),
  schedulingPolicy: fc.constantFrom('fcfs' as const, 'priority' as const),
  prefixCaching: fc.boolean(),
  seed: fc.nat(),
});

/** The first precision that a profile has. */
function weightsOf({ weights }: EngineProfile): NonNullable<SimulationOptions['weights']> {
  return Object.keys(weights)[0] as NonNullable<SimulationOptions['weights']>;
}

function assertServed(run: SimulationRun, { arrivalMs }: Trace): void {
  assert.equal(run.completed + run.rejected, arrivalMs.length);
  assert.equal(run.ids.length, run.completed);
  assert.equal(new Set(run.ids).size, run.completed);
  for (let i = 0; i < run.completed; i++) {
    const { [i]: queue } = run.queueMs;
    assert.ok(
      queue! >= 0 && run.ttftMs[i] >= queue! && run.e2eMs[i] >= run.ttftMs[i],
      `request ${run.ids[i]}`,
    );
    assert.ok(Number.isFinite(run.e2eMs[i]));
  }
}

describe('any workload on any profile', () => {
  test('is served to its end by replicas, every request completed or rejected', () => {
    fc.assert(
      fc.property(
        profile,
        trace,
        options,
        fc.integer({ min: 1, max: 3 }),
        fc.constantFrom(...ROUTER_POLICIES),
        (drawn, load, knobs, replicas, router) => {
          const run = simulateTrace(load, {
            profile: drawn,
            weights: weightsOf(drawn),
            ...knobs,
            replicas,
            router: replicas === 1 ? 'round_robin' : router,
          });
          assertServed(run, load);
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe('a trace that is none', () => {
  const good = { arrivalMs: [0, 5, 9], inputTokens: [10, 20, 30], outputTokens: [5, 5, 5] };
  const refused: readonly [what: string, change: Partial<typeof good>, field: string][] = [
    ['a time that goes backwards', { arrivalMs: [0, 5, 4] }, 'arrival'],
    ['a time that is no number', { arrivalMs: [0, Number.NaN, 9] }, 'arrival'],
    ['a prompt of nothing', { inputTokens: [10, 0, 30] }, 'input'],
    ['a prompt beyond all', { inputTokens: [10, 2_000_000_000, 30] }, 'input'],
    ['an output below nothing', { outputTokens: [5, -1, 5] }, 'output'],
    ['fewer prompts than times', { inputTokens: [10, 20] }, 'input'],
  ];
  for (const [what, change, field] of refused) {
    test(`is refused for ${what}`, () => {
      const { arrivalMs, inputTokens, outputTokens } = { ...good, ...change };
      const broken: Trace = {
        source: 'broken',
        arrivalMs: Float64Array.from(arrivalMs),
        inputTokens: Int32Array.from(inputTokens),
        outputTokens: Int32Array.from(outputTokens),
      };
      const expected = { name: 'SimulatorError', code: 'ENGINE_REQUEST', field };
      assert.throws(() => simulateTrace(broken, { profile: fixtureProfile }), expected);
    });
  }
});

describe('a knob that is out of range', () => {
  const load: Trace = {
    source: 'one',
    arrivalMs: Float64Array.of(0),
    inputTokens: Int32Array.of(10),
    outputTokens: Int32Array.of(5),
  };
  const refused: readonly [change: Partial<SimulationOptions>, expected: object][] = [
    [{ maxNumSeqs: 0 }, { field: 'maxNumSeqs' }],
    [{ maxNumSeqs: Number.NaN }, { field: 'maxNumSeqs' }],
    [{ maxNumBatchedTokens: 0.5 }, { field: 'maxNumBatchedTokens' }],
    [{ kvBlocks: 0 }, { field: 'kvBlocks' }],
    [{ kvBudgetFraction: 0 }, { code: 'SIMULATION_OPTION' }],
    [{ kvBudgetFraction: 1.1 }, { code: 'SIMULATION_OPTION' }],
    [{ kvBudgetFraction: Number.NaN }, { code: 'SIMULATION_OPTION' }],
    [{ speculationDepth: 9 }, { field: 'survival' }],
    [{ speculationDepth: -1 }, { field: 'speculationDepth' }],
    [{ acceptance: 'poem', speculationDepth: 1 }, { code: 'PROFILE_ACCEPTANCE' }],
    [{ weights: 'INT4' }, { code: 'PROFILE_VARIANT' }],
    [{ seed: Number.NaN }, { field: 'seed' }],
    [{ replicas: 0 }, { code: 'SIMULATION_OPTION' }],
    [{ priorities: Uint8Array.of(8) }, { field: 'priority' }],
  ];
  for (const [change, expected] of refused) {
    test(`is refused: ${Object.entries(change).map(([name, value]) => `${name} ${value}`)}`, () => {
      assert.throws(() => simulateTrace(load, { profile: fixtureProfile, ...change }), expected);
    });
  }
});
