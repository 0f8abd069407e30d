import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Evaluation, TaskEvaluation } from '@servegym/agents';
import { evaluationForm, evaluationJson } from './evaluation-report.ts';

const score = { mean: 0.31, iqm: 0.3, ci95: [0.25, 0.36] } as const;
const gains = {
  gain: { mean: 0.5, ci95: [0.4, 0.6] },
  worst10: -1.25,
  belowDefault: 0.19,
  estimated: false,
} as const;
const bursty: TaskEvaluation = {
  gains,
  taskId: 'bursty_workload',
  score,
  return: { mean: 41, iqm: 42, ci95: [39, 45] },
  regret: { mean: 6, iqm: 5, ci95: [4, 7] },
  sloCompliance: 0.875,
  costPer1k: 0.00123,
  preemptions: 4.5,
  windowsPerSecond: 1234.5,
  episodes: [
    {
      taskId: 'bursty_workload',
      seed: 7,
      score: 0.31,
      return: 41,
      regret: 6,
      anchors: { default: 35, clairvoyant: 47, estimated: false },
      sloCompliance: 0.875,
      costPer1k: 0.00123,
      preemptions: 4.5,
      windows: 120,
    },
  ],
};
const context = { environment: { id: 'llmserve', version: '1.2.3' }, split: 'test', episodes: 1 };
const one: Evaluation = { policy: 'heuristic', tasks: [bursty], overall: score, gains };
const two: Evaluation = { ...one, tasks: [bursty, { ...bursty, taskId: 'static_workload' }] };

describe('the JSON of an evaluation', () => {
  it('has score, interval and runs of every task by its id', () => {
    const json = evaluationJson(two, context);
    assert.deepEqual(Object.keys(json.tasks), ['bursty_workload', 'static_workload']);
    assert.deepEqual(JSON.parse(JSON.stringify(json.tasks.bursty_workload)), {
      score: { mean: 0.31, iqm: 0.3, ci95: [0.25, 0.36] },
      gain: { mean: 0.5, ci95: [0.4, 0.6], estimated: false },
      worst10: -1.25,
      below_default: 0.19,
      return: { mean: 41, iqm: 42, ci95: [39, 45] },
      regret: { mean: 6, iqm: 5, ci95: [4, 7] },
      slo_compliance: 0.875,
      cost_per_1k_usd: 0.00123,
      preemptions: 4.5,
      windows_per_s: 1234.5,
      runs: [
        {
          ...{ seed: 7, score: 0.31, return: 41, regret: 6 },
          anchors: { default: 35, clairvoyant: 47, estimated: false },
        },
      ],
    });
  });

  it('says what it was made on', () => {
    const { agent, environment, version, split, episodes } = evaluationJson(one, context);
    assert.deepEqual(
      { agent, environment, version, split, episodes },
      { agent: 'heuristic', environment: 'llmserve', version: '1.2.3', split: 'test', episodes: 1 },
    );
  });
});

describe('the text of an evaluation', () => {
  it('lines up a row for each task, and one for all of them', () => {
    const lines = evaluationForm(context).text(two).split('\n');
    assert.equal(lines[0], 'heuristic on llmserve 1.2.3, test split, 1 episode a task');
    const gainTexts = ['0.500', '0.400 .. 0.600', '-1.250', '19 %'];
    const rows = lines.filter((line) => line.includes(' .. '));
    assert.deepEqual(
      rows.map((row) => row.split(/\s{2,}/)),
      [
        [
          'bursty_workload',
          ...gainTexts,
          '0.300',
          '0.250 .. 0.360',
          '0.310',
          '42.00',
          '5.00',
          '87.5 %',
          '0.00123',
          '4.5',
          '1235',
        ],
        [
          'static_workload',
          ...gainTexts,
          '0.300',
          '0.250 .. 0.360',
          '0.310',
          '42.00',
          '5.00',
          '87.5 %',
          '0.00123',
          '4.5',
          '1235',
        ],
        ['all', ...gainTexts, '0.300', '0.250 .. 0.360', '0.310'],
      ],
    );
    assert.equal(new Set(rows.map((row) => row.indexOf(' .. '))).size, 1);
  });

  it('marks an estimated clairvoyant, and leaves the gain out where there are no anchors', () => {
    const row = (changed: Partial<TaskEvaluation>) =>
      evaluationForm(context)
        .text({ ...one, tasks: [{ ...bursty, ...changed }] })
        .split('\n')[3];
    assert.match(row({ gains: { ...gains, estimated: true } }), /^bursty_workload +~0\.500 .* ~-1\.250 /);
    assert.match(row({ gains: null }), /^bursty_workload( +-){4} +0\.300/);
  });

  it('leaves out the row for all of one task', () => {
    assert.ok(!evaluationForm(context).text(one).includes('\nall'));
  });
});
