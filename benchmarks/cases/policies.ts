import { readFileSync, writeFileSync } from 'node:fs';
import { PolicyEvaluator } from '../../packages/servegym/src/cli/policy/evaluate-policy.ts';
import { policyReport } from '../../packages/servegym/src/cli/policy/report.ts';
import {
  drawSecret,
  referencesOf,
  type Split,
  SUITE_NAMES,
  type SuiteName,
  suitePolicies,
  tracesOf,
} from '../../packages/servegym/src/cli/policy/suite.ts';
import { benchmark, text } from '../harness.ts';

const LIMITS = { seconds: 3600, memoryMiB: 2048 };
const ANCHORS = new URL('../../packages/servegym/src/cli/policy/anchors.json', import.meta.url);

/** Scores of policies on a split of a suite, each with its 95 % interval. */
async function* scores(suite: SuiteName, split: Split, secret: string, policies: readonly string[]) {
  const traces = secret.split(',').flatMap((each) => tracesOf(suite, split, each));
  const evaluator = new PolicyEvaluator(suite, split, traces, LIMITS);
  try {
    for (const policy of policies) {
      const { combinedScore, ci95, attainment, usd } = policyReport(await evaluator.evaluate(policy));
      const [low, high] = ci95;
      yield { suite, split, policy, score: combinedScore, low, high, 'in objectives': attainment, USD: usd };
    }
  } finally {
    evaluator.close();
  }
}

/** Values of the default and of the best known on the traces that are given. */
async function anchors(suites: readonly SuiteName[]) {
  const recorded: Record<string, Record<string, readonly number[]>> = {};
  for (const suite of suites)
    for (const split of ['train', 'validation'] as const) {
      const limits = { ...LIMITS, isRecording: true };
      const evaluator = new PolicyEvaluator(suite, split, tracesOf(suite, split, ''), limits);
      const { traces } = await evaluator.evaluate(referencesOf(suite).default);
      evaluator.close();
      recorded[`${suite} ${split}`] = Object.fromEntries(
        traces.map(({ name, values }) => [name, [values.default, values.best]]),
      );
    }
  return recorded;
}

export default benchmark({
  what: `Scores of all built-in policies on traces that are drawn from a secret, or from several with commas between (--secret, else a new one), as docs/policies.md has them.
--record plays the default and the best known on the traces that are given, and writes their values to anchors.json.`,
  options: { suite: text, split: 'test', secret: text, record: false },
  async *run({ suite, split, secret = drawSecret(), record }) {
    const suites = SUITE_NAMES.filter((name) => suite === undefined || name === suite);
    if (record) {
      const known = JSON.parse(readFileSync(ANCHORS, 'utf8'));
      writeFileSync(ANCHORS, `${JSON.stringify({ ...known, ...(await anchors(suites)) }, null, 2)}\n`);
      yield `wrote ${suites.length} suites`;
      return;
    }
    yield `secret ${secret}`;
    for (const name of suites) yield* scores(name, split as Split, secret, suitePolicies(name));
  },
});
