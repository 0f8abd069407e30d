import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { EnvironmentError } from '@servegym/openenv/definition';
import officeHours from '../../examples/office-hours.ts';
import { SERVE_KNOBS } from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import { defineServeTask, SERVE_TASKS, serveTasks } from './serve-task.ts';

const objective = { ttftMs: 500, tpotMs: 30, weight: 1 };
const lengths = { median: 100, sigma: 0.5, min: 16, max: 512 };

const minimal = defineServeTask({
  id: 'minimal',
  name: 'Minimal',
  description: 'As little as a task can say.',
  windows: 20,
  profile: 'a100-40gb-llama-3-8b',
  objectives: { interactive: objective, batch: objective, best_effort: objective },
  reward: { throughput: 0.4, slo: 0.6, memory: 0.3, cost: 0.1 },
  referenceCostPer1k: 0.002,
  defaultAction: SERVE_TASKS.static_workload.defaultAction,
  phases: [
    {
      name: 'only',
      windows: 20,
      arrivalsPerSecond: 5,
      traffic: { interactive: { share: 1, prompt: lengths, output: lengths } },
      qualityValue: 4,
    },
  ],
});

const refuses = (change: object, message: RegExp) =>
  assert.throws(
    () => serveTasks.parse({ ...minimal, ...change }, 'my-task.json'),
    (error) =>
      error instanceof EnvironmentError &&
      error.message.startsWith('my-task.json') &&
      message.test(error.message),
    JSON.stringify(change),
  );

describe('a task in a file', () => {
  it('may leave out what has a usual value', () => {
    const task = serveTasks.parse(minimal, 'my-task.json');
    assert.equal(task.difficulty, 'medium');
    assert.equal(task.windowSeconds, 5);
    assert.deepEqual(task.phases[0].windows, [20, 20]);
    assert.deepEqual(task.phases[0].arrivalsPerSecond, [5, 5]);
    assert.deepEqual(task.phases[0].tenantGiB, [0, 0]);
  });

  it('can say all that our own tasks say', () => {
    for (const task of Object.values(SERVE_TASKS)) {
      const { id, ...rest } = JSON.parse(JSON.stringify(task));
      assert.deepEqual(serveTasks.parse({ ...rest, id: 'copy' }, 'copy'), { ...rest, id: 'copy' });
    }
  });

  it('is refused with the field that is wrong', () => {
    const [phase] = minimal.phases;
    refuses({ id: 'With Spaces' }, /id: Expected lower-case/);
    refuses({ profile: 'a100' }, /profile: .*closest/);
    refuses({ profile: 'h100-80gb-llama-4-scout-tp2' }, /profile: .*lacks|acceptance/);
    refuses({ acceptance: 'poems' }, /acceptance: .*sharegpt/);
    refuses({ windows: 0 }, /windows/);
    refuses({ reward: { throughput: 0.8, slo: 0.8, memory: 0, cost: 0 } }, /reward: .*at most 1/);
    refuses({ defaultAction: { ...minimal.defaultAction, batch_cap: 0 } }, /defaultAction\.batch_cap/);
    refuses({ phases: [] }, /phases/);
    refuses({ phases: [{ ...phase, arrivalsPerSecond: [5, 2] }] }, /phases\.0\.arrivalsPerSecond/);
    refuses(
      { phases: [{ ...phase, traffic: { interactive: { share: 0.5, prompt: lengths, output: lengths } } }] },
      /phases\.0\.traffic: .*sum to 1/,
    );
    refuses({ rewards: {} }, /rewards/);
    assert.throws(() => serveTasks.parse(null, 'x'), EnvironmentError);
  });

  it('may mask knobs, by their names, each once, and not all of them', () => {
    const masks = ['quantization_tier', 'prefill_decode_split'] as const;
    const task = serveTasks.parse({ ...minimal, maskedKnobs: masks }, 'my-task.json');
    assert.deepEqual(task.maskedKnobs, masks);
    assert.ok(!('maskedKnobs' in serveTasks.parse(minimal, 'my-task.json')));
    refuses({ maskedKnobs: ['quantisation'] }, /maskedKnobs\.0: .*quantization_tier/);
    refuses({ maskedKnobs: ['batch_cap', 'batch_cap'] }, /maskedKnobs: Expected each knob once/);
    refuses({ maskedKnobs: [] }, /maskedKnobs: Expected at least one knob/);
    refuses({ maskedKnobs: [...SERVE_KNOBS] }, /maskedKnobs: Expected a knob to be left free/);
    refuses({ maskedKnobs: 'batch_cap' }, /maskedKnobs: /);
  });
});

describe('the task of docs/your-own-task.md', () => {
  it('data: is shown as it stands in its file', () => {
    const page = readFileSync(new URL('../../../../docs/your-own-task.md', import.meta.url), 'utf8');
    const file = readFileSync(new URL('../../examples/office-hours.ts', import.meta.url), 'utf8');
    assert.ok(page.includes(`\`\`\`ts\n${file}\`\`\`\n`));
  });

  it('can be played', () => {
    const task = serveTasks.parse(officeHours, 'office-hours.ts');
    const episode = new ServeEpisode(task, 1);
    while (!episode.done) episode.step(task.defaultAction);
    assert.ok(episode.totals.reward > 0.3 * task.windows, `${episode.totals.reward}`);
  });
});
