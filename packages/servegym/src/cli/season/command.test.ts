import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AGENT_JOB_KINDS } from '@servegym/agents';
import { LocalJobs } from '@servegym/jobs';
import { seasonDefinition, seasonScoring } from './command.ts';

describe('the scoring of llmserve', () => {
  it('holds an episode against anchors of its own seed, which their actions earn', async (t) => {
    const definition = await seasonDefinition('llmserve');
    const jobs = new LocalJobs({ kinds: AGENT_JOB_KINDS, threads: 1 });
    t.after(() => jobs.close());
    const scoring = seasonScoring(definition, jobs);
    const reset = { task_id: 'static_workload', seed: 2 ** 52 + 1 };
    const [anchors] = await scoring.anchors([reset]);
    const { default: standard, clairvoyant } = anchors!;
    assert.ok(clairvoyant.return > standard.return);

    const { windows } = definition.tasks!.find(({ id }) => id === reset.task_id) as unknown as {
      windows: number;
    };
    const judged = (actions: readonly unknown[], length = windows) =>
      scoring.judge(
        { reset, actions: Array.from({ length }, (_, i) => actions[Math.min(i, actions.length - 1)]) },
        anchors!,
      );
    const [asDefault, asPlanned, left] = await Promise.all([
      judged(standard.actions),
      judged(clairvoyant.actions),
      judged(clairvoyant.actions, windows - 60),
    ]);
    assert.ok(Math.abs(asDefault.score - 0.2) < 1e-9 && Math.abs(asPlanned.score - 0.95) < 1e-9);
    assert.ok(Math.abs(asPlanned.return - clairvoyant.return) < 1e-9);
    // Windows that were not played cost 1 each.
    assert.ok(left.return < asPlanned.return - 60);
  });
});
