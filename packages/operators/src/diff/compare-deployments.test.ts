import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile, measuredLoad } from '@servegym/profiles';
import { RandomStream, scaleRate, type Trace } from '@servegym/simulator';
import type { Deployment } from '../deployment/deployment.ts';
import { diffResult } from '../report/diff-report.ts';
import { type Candidate, vllmDefaults } from '../search/candidate.ts';
import { PROFILE_ERRORS, profileError } from '../search/profile-error.ts';
import { parseSlo } from '../search/slo.ts';
import { blocksOf, compareDeployments, compareMeasured, diffAnswer } from './compare-deployments.ts';

const profile = findProfile('h100-80gb-llama-3-8b');

/** A Poisson process of so many requests a second. */
function poisson(rate: number, requests = 1200): Trace {
  const random = new RandomStream(5, 'trace');
  let at = 0;
  return {
    source: 'drawn',
    arrivalMs: Float64Array.from({ length: requests }, () => {
      at += 1000 * random.exponential(1 / rate);
      return at;
    }),
    inputTokens: Int32Array.from({ length: requests }, () => random.integer(100, 2000)),
    outputTokens: Int32Array.from({ length: requests }, () => random.integer(20, 300)),
  };
}

const traffic = blocksOf(poisson(8));

function deployed(settings: Partial<Candidate> = {}, engines = 1): Deployment {
  return {
    ...{ name: 'test', profile, engines, notSimulated: [] },
    settings: { ...vllmDefaults(profile), ...settings },
  };
}

const compare = (candidate: Deployment, slo = 'ttft_p99=1s,tpot_p99=40ms', baseline = deployed()) =>
  compareDeployments(baseline, candidate, traffic, parseSlo(slo), 0);

describe('compareDeployments', () => {
  it('tells no difference between equal settings', () => {
    const diff = compare(deployed());
    for (const { ratio, verdict } of [...diff.bounds, ...diff.figures]) {
      assert.deepEqual([ratio, verdict], [1, 'too close to tell']);
    }
    assert.deepEqual([diff.bounds.map(({ bound }) => bound), diffAnswer(diff)], [['holds', 'holds'], 'yes']);
  });

  it('cannot tell what a flag changes that is not simulated', () => {
    const flag = (notSimulated: string[], settings = {}) => ({ ...deployed(settings), notSimulated });
    const diff = compare(flag(['--attention-backend fa3']), undefined, flag(['--dtype float']));
    assert.deepEqual(diff.untold, ['--dtype float', '--attention-backend fa3']);
    assert.match(
      diff.verdict,
      /^cannot be told, .*: what changes with --dtype float; --attention-backend fa3$/,
    );
    assert.equal(diffAnswer(diff), 'undecided');
    const same = flag(['--dtype float']);
    assert.equal(diffAnswer(compare(same, undefined, same)), 'yes');
    // What is simulated has an answer of its own.
    assert.deepEqual(compare(flag(['--dtype float'], { maxNumSeqs: 4 })).untold, []);
  });

  it('says that a small cap breaks the TTFT, and makes tokens faster', () => {
    const diff = compare(deployed({ maxNumSeqs: 4 }));
    assert.deepEqual(
      [diff.bounds[0].bound, diff.bounds[0].verdict, diffAnswer(diff)],
      ['breaks', 'worse', 'no'],
    );
    assert.equal(diff.figures.find(({ name }) => name === 'TPOT p50')!.verdict, 'better');
    const back = compare(deployed(), undefined, deployed({ maxNumSeqs: 4 }));
    assert.deepEqual([back.bounds[0].bound, diffAnswer(back)], ['mends', 'yes']);
  });

  it('says that a broken bound gets worse', () => {
    const diff = compare(deployed({ maxNumSeqs: 4 }), 'ttft_p50=1ms');
    assert.deepEqual([diff.bounds[0].bound, diffAnswer(diff)], ['broken', 'no']);
    assert.equal(diffAnswer(compare(deployed(), 'ttft_p50=1ms')), 'yes');
  });

  it('holds the change that longer times of the profile would give', () => {
    const baseline = deployed({ weights: 'INT4' });
    const candidate = deployed({ weights: 'INT4', maxNumSeqs: 8 });
    const slo = parseSlo('ttft_mean=1s');
    const [now] = compareDeployments(baseline, candidate, traffic, slo, 0).bounds;
    const error = 1 + profileError(profile, 'INT4').share;
    const slower = blocksOf(scaleRate(traffic.trace, error));
    const [later] = compareDeployments(baseline, candidate, slower, slo, 0).bounds;
    assert.ok(now.ratio < later.ratio && now.interval.high >= later.ratio, JSON.stringify([now, later]));
  });

  it('cannot tell where the limit lies within the error of the profile', () => {
    const [{ candidate }] = compare(deployed()).bounds;
    const diff = compare(deployed(), `ttft_p99=${candidate.toFixed(3)}ms`);
    assert.deepEqual([diff.bounds[0].bound, diffAnswer(diff)], ['too close to tell', 'undecided']);
  });

  it('allows for the errors of both engines where they differ, and for the worse one where they do not', () => {
    const tables = { ...deployed(), profile: findProfile('h100-80gb-qwen3-235b-a22b-tp8') };
    const on = (engine: 'vLLM' | 'SGLang', profile = tables.profile): Deployment => ({
      ...{ ...tables, profile, engine },
      settings: { ...vllmDefaults(profile) },
    });
    const [vllm, sglang] = (['vLLM', 'SGLang'] as const).map((name) => on(name));
    const { share } = PROFILE_ERRORS.tables;
    const few = blocksOf(poisson(8, 80));
    const slo = parseSlo('ttft_p99=1s,tpot_p99=40ms');
    const compare = (candidate: Deployment, baseline = vllm) =>
      compareDeployments(baseline, candidate, few, slo, 0);
    assert.equal(compare(vllm).profileError, 0);
    const both = compare(sglang);
    assert.equal(both.profileError, Math.sqrt(share ** 2 + PROFILE_ERRORS.tablesOfSglang.share ** 2));
    assert.ok(both.bounds.every(({ verdict }) => verdict === 'too close to tell'));
    const [fitted, other] = ['a100-40gb-llama-3-8b', 'h100-80gb-llama-3-8b'].map((name) => findProfile(name));
    const errors = [fitted, other].map((each) => profileError(each, 'FP16').share);
    const apart = compare(on('vLLM', fitted), on('vLLM', other)).profileError;
    assert.ok(Math.abs(apart - Math.sqrt(errors[0] ** 2 + errors[1] ** 2)) < 1e-12);
    const divided = findProfile('h100-80gb-qwen3-235b-a22b-tp8-ep8');
    assert.equal(compare(on('vLLM', divided)).profileError, share);
    // What another engine has for it is not known.
    assert.match(compare(on('SGLang', divided), sglang).untold.join(), /kernels of divided experts/);
    const guessed = { ...on('SGLang', findProfile('a100-80gb-gpt-oss-20b')) };
    assert.match(compare(guessed, { ...guessed, engine: 'vLLM' }).verdict, /^cannot be told.*kernels/);
  });

  it('widens intervals where profiles differ, and prices the engines', () => {
    const other = { ...deployed({ weights: 'INT8' }, 2) };
    const diff = compare(other);
    assert.ok(diff.profileError > 0.2, `${diff.profileError}`);
    assert.equal(diff.usdPerHour.candidate, 2 * diff.usdPerHour.baseline);
    const same = compare(deployed({}, 2));
    assert.equal(same.profileError, 0);
    const width = ({ interval, ratio }: (typeof diff.bounds)[number]) =>
      (interval.high - interval.low) / ratio;
    assert.ok(width(diff.bounds[1]) > width(same.bounds[1]));
  });
});

describe('compareMeasured', () => {
  const load = (source: string, ttftMs: number, failed = 0) =>
    measuredLoad(
      source,
      Array.from({ length: 400 }, (_, i) => ({
        ...{ arrivalMs: 100 * i, inputTokens: 800, outputTokens: 11 },
        ...{ ttftMs: ttftMs + (i % 7), e2eMs: ttftMs + (i % 7) + 200 },
      })),
      failed,
    );
  const slo = parseSlo('ttft_p99=150ms,tpot_p99=50ms');

  it('compares two measured loads by the same rules, without profiles and prices', () => {
    const diff = compareMeasured(load('turns', 200), load('prefixes', 100), slo, 0);
    assert.deepEqual(
      diff.bounds.map(({ bound }) => bound),
      ['mends', 'holds'],
    );
    assert.equal(diffAnswer(diff), 'yes');
    assert.equal(diffAnswer(compareMeasured(load('prefixes', 100), load('turns', 200), slo, 0)), 'no');
    const text = diffResult.text(diff);
    assert.match(text, /baseline: turns, 400 requests measured, 0 failed/);
    assert.doesNotMatch(text, /USD/);
  });

  it('says no where more requests failed', () => {
    const diff = compareMeasured(load('a', 100), load('b', 100, 3), slo, 0);
    assert.equal(diffAnswer(diff), 'no');
    assert.match(diff.verdict, /^3 requests more failed/);
  });
});
