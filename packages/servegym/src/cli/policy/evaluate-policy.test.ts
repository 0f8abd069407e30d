import assert from 'node:assert/strict';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { PolicyFunctions } from '@servegym/simulator';
import { PolicyEvaluator } from './evaluate-policy.ts';
import { GUEST } from './guest.ts';
import { STANDARD, startReference } from './references.ts';
import { comparePolicies, comparisonForm, evaluationForm, evaluationPage, policyReport } from './report.ts';
import { combinedScore, type TraceFigures, traceFigures } from './score.ts';
import { drawTrial, recordedValues, referencesOf, SUITE_NAMES, tracesOf, WORTH } from './suite.ts';
import templates from './templates.json' with { type: 'json' };
import { impossible, runScaledTrial, runTrial, type TrialResult } from './trial.ts';

const folder = await mkdtemp(join(tmpdir(), 'policies-'));
const LIMITS = { seconds: 300, memoryMiB: 512, requests: 400 };
const EPP = STANDARD as PolicyFunctions;

async function fileOf(name: string, source: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, source);
  return file;
}

async function withEvaluator<T>(
  use: (evaluator: PolicyEvaluator) => Promise<T>,
  { traces = tracesOf('router', 'train', '').slice(0, 3), limits = LIMITS } = {},
): Promise<T> {
  const evaluator = new PolicyEvaluator('router', 'train', traces, limits);
  try {
    return await use(evaluator);
  } finally {
    evaluator.close();
  }
}

const IN_TURNS = 'export default { score: () => 0 };';

describe('the score of a policy', () => {
  it('is 0 for what the default does, and that of the best known for what that does, to the bit', async () => {
    const standard = await fileOf('template.ts', templates.router.join('\n'));
    const best = join(import.meta.dirname, 'examples/router.ts');
    await withEvaluator(async (evaluator) => {
      const report = policyReport(await evaluator.evaluate(standard));
      assert.deepEqual([report.combinedScore, ...report.ci95], [0, 0, 0]);
      const known = policyReport(await evaluator.evaluate(best));
      for (const { value, bestValue } of known.traces) assert.equal(value, bestValue);
      const json = evaluationForm.json!(report) as Record<string, unknown>;
      for (const name of [
        'combined_score',
        'ci95',
        'classes',
        'usd',
        'fairness',
        'goodput_rps',
        'worst',
        'policy_share',
      ])
        assert.ok(name in json, name);
      assert.match(
        evaluationForm.text(report),
        /^score +0\.000, 95 % interval 0\.000 to 0\.000 over the traces$/m,
      );
    });
  });

  it('is 1 for the best known, and does not blow up a gain that is next to nothing', () => {
    const played = [0.1, 0.3].map((gain) => ({ policy: 0.5 + gain, default: 0.5, best: 0.5 + gain }));
    assert.ok(Math.abs(combinedScore(played).score - 1) < 1e-9);
    assert.deepEqual(combinedScore(played.map((at) => ({ ...at, policy: 0.5 }))).ci95, [0, 0]);
    const near = [{ policy: 0.501, default: 0.5, best: 0.5 - 1e-9 }];
    assert.ok(Math.abs(combinedScore(near).score - 1) < 1e-6);
  });

  it('of a policy that hangs is -1, and says so', async () => {
    const file = await fileOf('hangs.js', 'export default { score() { for (;;); } };');
    await withEvaluator(
      async (evaluator) => {
        const report = policyReport(await evaluator.evaluate(file));
        assert.ok(report.combinedScore <= -1 + 1e-9);
        assert.match(evaluationForm.text(report), /had not served the trace after 5 s, and was stopped/);
      },
      { traces: tracesOf('router', 'train', '').slice(0, 1), limits: { ...LIMITS, seconds: 5 } },
    );
  });

  it('compares two policies on the same traces', async () => {
    const [a, b] = [await fileOf('a.js', IN_TURNS), await fileOf('b.js', 'export default {};')];
    await withEvaluator(async (evaluator) => {
      const [first, second] = [await evaluator.evaluate(a), await evaluator.evaluate(b)];
      assert.equal(comparePolicies(second, second).difference, 0);
      const forth = comparePolicies(first, second);
      const back = comparePolicies(second, first);
      assert.ok(Math.abs(forth.difference + back.difference) < 1e-12 && forth.difference !== 0);
      assert.match(comparisonForm.text(forth), /the same 3 traces[\s\S]*difference -?\d/);
    });
  });

  it('is shown where most is lost against the default', async () => {
    const first = await fileOf('first.js', 'export default { score: (_, { index }) => -index };');
    await withEvaluator(async (evaluator) => {
      assert.equal(await evaluator.worstMinute(await evaluator.evaluate('epp-default')), null);
      const evaluation = await evaluator.evaluate(first);
      const minute = await evaluator.worstMinute(evaluation);
      assert.ok(minute!.policy.requests === minute!.default!.requests && minute!.fromS % 60 === 0);
      assert.ok(minute!.policy.ttftP50Ms > minute!.default!.ttftP50Ms);
      assert.ok(minute!.policy.lostUsd > minute!.default!.lostUsd);
      const report = policyReport(evaluation, undefined, minute);
      assert.match(
        evaluationForm.text(report),
        /^worst minute +arrivals from second \d+ on, .*; the default: /m,
      );
      const [policy, standard] = [minute!.policy, minute!.default!].map(({ waiting }) => waiting);
      assert.deepEqual([policy.length, standard.length], [61, 61]);
      assert.ok(Math.max(...policy) > Math.max(...standard), `${policy} ${standard}`);
      for (const { arrivalS, ttftMs, defaultTtftMs } of minute!.losers)
        assert.ok(arrivalS >= minute!.fromS && arrivalS < minute!.fromS + 60 && ttftMs > defaultTtftMs);
      const { sections } = evaluationPage(report);
      const [waiting] = sections.flatMap(({ chart }) => chart ?? []);
      assert.deepEqual(
        waiting.lines!.map(({ points }) => points.map(([, count]) => count)),
        [standard, policy],
      );
      const calm = evaluationPage(policyReport(await evaluator.evaluate('epp-default'), undefined, null));
      assert.ok(calm.sections.every(({ chart }) => chart === undefined));
    });
  });

  it('refuses a file that is no policy with a sentence', async () => {
    await withEvaluator(async (evaluator) => {
      const broken = await fileOf('broken.ts', 'export default { score(a: number { } };');
      await assert.rejects(evaluator.evaluate(broken), { code: 'INVALID_FILE' });
      await assert.rejects(evaluator.evaluate(join(folder, 'none.ts')), { code: 'FILE_UNREADABLE' });
      const other = await fileOf('other.js', 'export default 5;');
      await assert.rejects(evaluator.evaluate(other), /expected the module to export a policy .* got 5/);
    });
  });
});

describe('the traces of a suite', () => {
  it('of a test are those of the secret alone', () => {
    for (const suite of SUITE_NAMES) {
      const drawn = tracesOf(suite, 'test', 'a'.repeat(64));
      assert.deepEqual(tracesOf(suite, 'test', 'a'.repeat(64)), drawn);
      const others = tracesOf(suite, 'test', 'b'.repeat(64));
      for (const [i, { seed }] of drawn.entries()) assert.notEqual(others[i].seed, seed);
      const given = [...tracesOf(suite, 'train', ''), ...tracesOf(suite, 'validation', '')];
      for (const { seed } of drawn) assert.ok(given.every((each) => each.seed !== seed));
    }
  });

  it('are of all traffics, GPUs, loads and faults, in training as in validation', () => {
    for (const suite of SUITE_NAMES)
      for (const split of ['train', 'validation'] as const) {
        const columns = [0, 1, 2, 3].map(
          (at) => new Set(tracesOf(suite, split, '').map(({ name }) => name.split(' ')[at])),
        );
        assert.deepEqual(
          columns.map(({ size }) => size),
          [4, 2, 3, 4],
        );
      }
  });

  it('data: have the values of the default and of the best known that are recorded', async () => {
    for (const suite of SUITE_NAMES) {
      const [trace] = tracesOf(suite, 'train', '').slice(-2);
      const trial = drawTrial(suite, trace);
      const recorded = recordedValues(suite, 'train', trace.name);
      const run = trial.task === undefined ? runTrial : runScaledTrial;
      const policy = await startReference(referencesOf(suite).best);
      const { value } = traceFigures(trial, await run(trial, policy, EPP), WORTH);
      assert.equal(value, recorded?.best, `${suite}: npx node benchmarks/run.ts policies --record`);
    }
  });

  it('cannot be answered from a table of those that are given', async () => {
    const [known] = tracesOf('router', 'train', '');
    const { requests } = drawTrial('router', known, LIMITS.requests);
    const arrivals = Array.from(requests.starts, (id) => [
      requests.inputTokens[id],
      requests.outputTokens[id],
    ]);
    const file = await fileOf(
      'table.js',
      `const known = ${JSON.stringify(arrivals)}; let at = 0; let hits = 0;
       export default { score(request, replica) {
         if (replica.index === 0 && request.prompt_tokens === known[at++]?.[0]) hits++;
         if (hits > known.length / 2) throw new Error('LOOT');
         return 0; } };`,
    );
    const faultsOn = (traces: ReturnType<typeof tracesOf>) =>
      withEvaluator(async (evaluator) => policyReport(await evaluator.evaluate(file)).faults, { traces });
    assert.match((await faultsOn([known]))[0].message, /LOOT/);
    assert.deepEqual(await faultsOn(tracesOf('router', 'test', 'c'.repeat(64)).slice(0, 2)), []);
  });

  it('are worth less with a slow, a lost or a silent replica', () => {
    const value = (fault: string): TraceFigures => {
      const trial = drawTrial('router', { name: `rag h100 high ${fault}`, seed: 3 }, 3000);
      return traceFigures(trial, runTrial(trial, {}, EPP), WORTH);
    };
    const [sound, slow, lost] = ['none', 'slow', 'lost'].map(value);
    assert.ok(
      slow.value < sound.value - 0.01 && lost.value < sound.value - 0.001,
      `${[slow.value, lost.value, sound.value]}`,
    );
    const ages: number[] = [];
    const trial = drawTrial('router', { name: 'chat h100 low late', seed: 3 }, 1000);
    const score: PolicyFunctions['score'] = (_, { index, scrape_age }) => {
      if (index === 3) ages.push(scrape_age);
      return 0;
    };
    runTrial(trial, { score }, EPP);
    assert.ok(Math.max(...ages) > 3 && ages.filter((age) => age <= 0.2).length > 300);
  });
});

describe("the endpoint picker's default", () => {
  it('compares queues of the replicas that a request may go to, first to prefill and then to decode', () => {
    const request = {};
    const scores = (...queues: number[]) => {
      const replicas = queues.map((num_requests_waiting) => ({
        ...{ num_requests_waiting, kv_cache_usage_perc: 0, prefix_match: 0 },
      }));
      return replicas.map((each) => EPP.score!(request as never, each as never, 0, { replicas } as never));
    };
    assert.deepEqual(scores(10, 30), [4, 2]);
    assert.deepEqual(scores(2, 1), [2, 4]);
  });
});

describe('a result of the process of trials', () => {
  const trial = drawTrial('router', { name: 'agents h100 low none', seed: 5 }, 300);
  const result = runTrial(trial, {}, EPP);
  const forged = (edit: (copy: TrialResult) => void) => {
    const copy = structuredClone(result);
    edit(copy);
    return impossible(trial, copy);
  };

  it('adds up', () => assert.equal(impossible(trial, result), null));

  it('cannot have fewer tokens, requests before their time, or answers faster than a GPU', () => {
    assert.match(forged(({ outputs }) => outputs[3]--)!, /request 3 got \d+ of \d+ tokens/);
    assert.match(forged(({ refused }) => refused.fill(1))!, /both refused and answered/);
    assert.match(forged(({ arrivals }) => arrivals[trial.requests.starts[2]]--)!, /came before its time/);
    assert.match(forged(({ firstTokens, arrivals }) => firstTokens.set(arrivals))!, /faster than a GPU can/);
    assert.match(
      forged(({ firstTokens, lastTokens }) => lastTokens.set(firstTokens))!,
      /came before its time|faster/,
    );
  });

  it('is of a policy that sees what the simulator shows, no field less', () => {
    const names: Record<string, string[]> = {};
    const fields = (view: object) => {
      const all = Object.getOwnPropertyDescriptors(Object.getPrototypeOf(view));
      return Object.keys(all).filter((name) => all[name].get !== undefined);
    };
    const score: PolicyFunctions['score'] = (request, replica) => {
      names.request = fields(request);
      names.replica = fields(replica);
      return 0;
    };
    runTrial(trial, { score }, EPP);
    assert.deepEqual(names.request.sort(), [...GUEST.REQUEST, 'prefix_hashes'].sort());
    assert.deepEqual(names.replica.sort(), [...GUEST.REPLICA].sort());
  });
});
