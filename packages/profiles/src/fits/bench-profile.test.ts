import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import {
  type EngineProfile,
  type IterationLaw,
  RandomStream,
  simulateTrace,
  type Trace,
} from '@servegym/simulator';
import { summarize } from '@servegym/simulator/statistics';
import { findProfile } from '../data/catalog.ts';
import { VLLM_V0 } from '../data/engine-constants.ts';
import { findGpu } from '../data/gpu.ts';
import { findModel } from '../data/model-config.ts';
import { parseEngineProfile } from '../schema/parse-engine-profile.ts';
import { type BenchCalibration, calibrateBench } from './bench-profile.ts';
import { estimatedProfile } from './estimated-profile.ts';
import { coefficientOf, type LawCoefficient, mapLaw } from './fit-law.ts';
import { type MeasuredLoad, measuredLoad } from './measured-load.ts';

/** A server that the fit does not know: its loads are what is measured. */
const server = findProfile('a100-40gb-llama-3-8b');
/** Of the same generation of engines as the server. */
const start = estimatedProfile(findGpu('a100-40gb'), findModel('llama-3-8b'), 1, VLLM_V0);
const options = { start, source: 'test', command: 'test' };

function poisson(rate: number, count: number, seed: number, isVaried = true): Trace {
  const random = new RandomStream(seed, 'load');
  let at = 0;
  const arrivalMs = new Float64Array(count);
  const inputTokens = new Int32Array(count);
  const outputTokens = new Int32Array(count);
  for (let i = 0; i < count; i += 1) {
    at += random.exponential(1000 / rate);
    arrivalMs[i] = at;
    inputTokens[i] = isVaried ? Math.min(4000, 16 + Math.floor(random.lognormal(5.8, 1))) : 400;
    outputTokens[i] = isVaried ? Math.min(800, 2 + Math.floor(random.lognormal(4.8, 0.8))) : 100;
  }
  return { source: 'poisson', arrivalMs, inputTokens, outputTokens };
}

function served(trace: Trace, source: string, profile = server): MeasuredLoad {
  const run = simulateTrace(trace, { profile });
  const requests = Array.from(run.ids, (id, i) => ({
    arrivalMs: trace.arrivalMs[id],
    inputTokens: trace.inputTokens[id],
    outputTokens: trace.outputTokens[id],
    ttftMs: run.ttftMs[i],
    e2eMs: run.e2eMs[i],
  }));
  return measuredLoad(source, requests, 0);
}

/** A law that takes prefill for slower and sequences for dearer than they are on the server. */
const FAR_OFF: IterationLaw = {
  baseUs: 1764,
  weightReadUs: 10_323,
  perTokenUs: 184,
  perDecodeSequenceUs: 392,
  perContextTokenNs: 295,
  perPrefillAttentionNs: 12.6,
};

function withLaw(
  profile: EngineProfile,
  change: (value: number, name: LawCoefficient) => number,
): EngineProfile {
  const variant = profile.weights.FP16!;
  return { ...profile, weights: { FP16: { ...variant, law: mapLaw(variant.law, change) } } };
}

describe('a profile fitted to loads on a server', () => {
  let calibration: BenchCalibration;
  before(() => {
    calibration = calibrateBench(
      [1, 4, 8].map((rate) => served(poisson(rate, 100 + 60 * rate, rate), `rate ${rate}`)),
      options,
    );
  });

  it('has the coefficients of the server, where the loads tell them apart', () => {
    const { law } = calibration.profile.weights.FP16!;
    const truth = server.weights.FP16!.law;
    const near = (fitted: number, real: number, share: number) =>
      assert.ok(Math.abs(fitted / real - 1) < share, `${fitted} for ${real}`);
    near(law.baseUs + law.weightReadUs, truth.baseUs + truth.weightReadUs, 0.03);
    near(law.perTokenUs, truth.perTokenUs, 0.1);
    // Ten sequences of 500 tokens.
    const decodeUs = ({ perDecodeSequenceUs, perContextTokenNs }: typeof law) =>
      10 * perDecodeSequenceUs + 5 * perContextTokenNs;
    near(decodeUs(law), decodeUs(truth), 0.15);
  });

  it('predicts a load that it has not seen', () => {
    const unseen = poisson(6, 500, 99);
    const [real, predicted] = [server, calibration.profile].map((profile) =>
      simulateTrace(unseen, { profile }),
    );
    for (const what of ['e2eMs', 'ttftMs'] as const) {
      const error = summarize(predicted![what]).mean / summarize(real![what]).mean - 1;
      assert.ok(Math.abs(error) < (what === 'e2eMs' ? 0.02 : 0.06), `${what}: ${error}`);
    }
  });

  it('tells its errors, on loads left out too', () => {
    const { folds, profile } = calibration;
    assert.deepEqual(
      folds.map(({ name, requests }) => [name, requests]),
      [
        ['rate 1', 160],
        ['rate 4', 340],
        ['rate 8', 580],
      ],
    );
    for (const { errors, leftOut } of folds) {
      assert.ok(Math.abs(errors.e2e) < 1.5, String(errors.e2e));
      assert.ok(Math.abs(leftOut.e2e) < 4, String(leftOut.e2e));
    }
    assert.ok(profile.fit!.heldOutWorstErrorPercent < 4);
    assert.equal(profile.fit!.rows, 1080);
    assert.equal(profile.status, 'measured');
  });

  it('is a profile like any other', () => {
    const { profile } = calibration;
    assert.deepEqual(parseEngineProfile(JSON.stringify(profile), 'test'), profile);
  });

  it('finds nothing that the loads lack', () => {
    assert.deepEqual(calibration.gaps, []);
    assert.ok(calibration.determined.perTokenUs! > 0.7);
  });
});

describe('a fit from a start that is far off', () => {
  const guess = { ...withLaw(start, (_, name) => coefficientOf(FAR_OFF, name)!), requestOverheadMs: 14.9 };

  it('finds the server all the same, from all loads as from some', () => {
    const loads = [1, 3, 6].map((rate) => served(poisson(rate, 60, rate), `rate ${rate}`));
    for (const left of [-1, 0, 1, 2]) {
      const { folds, warnings } = calibrateBench(
        loads.filter((_, l) => l !== left),
        { ...options, start: guess },
      );
      for (const { name, errors } of folds) {
        assert.ok(Math.abs(errors.e2e) < 5, `${name} without ${left}: ${errors.e2e} %`);
      }
      assert.doesNotMatch(warnings.join(), /contradict|is worse than/);
    }
  });
});

describe('loads of a server whose speed changed', () => {
  it('contradict each other, and are told with their speeds', () => {
    const slow = withLaw(server, (value) => 1.25 * value);
    const { folds, warnings } = calibrateBench(
      [
        served(poisson(2, 100, 1), 'day', slow),
        served(poisson(4, 100, 2), 'night'),
        served(poisson(2, 100, 3), 'morning'),
      ],
      options,
    );
    const [day, night, morning] = folds.map(({ slowness }) => slowness);
    assert.ok(Math.abs(day / night - 1.25) < 0.06, `${day} / ${night}`);
    assert.ok(Math.abs(morning / night - 1) < 0.05, `${morning} / ${night}`);
    assert.match(warnings.join(), /2\d % slower in day than in (night|morning)/);
  });
});

describe('loads that say little', () => {
  it('are told, and leave the profile near its start', () => {
    const lonely = calibrateBench([served(poisson(0.2, 40, 5, false), 'lonely')], options);
    assert.equal(lonely.gaps.length, 3);
    assert.match(
      lonely.gaps.join('\n'),
      /requests at once hardly varies[\s\S]*Prompts are of about one length/,
    );
    assert.ok(lonely.determined.perDecodeSequenceUs! < 0.5);
    const { law } = lonely.profile.weights.FP16!;
    assert.ok(Math.abs(law.perDecodeSequenceUs / start.weights.FP16!.law.perDecodeSequenceUs - 1) < 1);
    assert.deepEqual(
      lonely.folds.map(({ requests }) => requests),
      [10, 10, 10, 10],
    );
  });

  it('make a profile also where all tokens of some answers reach the client together', () => {
    const load = served(poisson(1, 40, 5), 'load');
    const requests = load.requests.map((r, i) => (i % 10 === 0 ? { ...r, e2eMs: r.ttftMs } : r));
    const { profile } = calibrateBench([measuredLoad('load', requests, 0)], options);
    assert.deepEqual(parseEngineProfile(JSON.stringify(profile), 'test'), profile);
  });

  it('are refused when they are too few', () => {
    assert.throws(() => calibrateBench([served(poisson(1, 10, 5), 'few')], options), {
      code: 'CALIBRATION_ROWS',
      message: /at least 20 requests/,
    });
  });

  it('are refused when the pool is said to be too small for what was served', () => {
    const load = served(poisson(1, 40, 5), 'load');
    assert.throws(() => calibrateBench([load], { ...options, kvBlocks: 10 }), {
      code: 'CALIBRATION_ROWS',
      message: /load: expected every request to fit the KV pool/,
    });
  });
});
