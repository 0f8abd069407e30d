import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { llmserve } from './environment.ts';
import type { ServeAction, ServerDescription } from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import { serverOf } from './serve-task.ts';

const TASK = 'bursty_workload';

/** Descriptions of a server without a profile before the first window and after each. */
function described(profile: string, actions: readonly Partial<ServeAction>[]): ServerDescription[] {
  const task = llmserve.choose({ task_id: TASK, profile, server_from: 'metrics' });
  const episode = new ServeEpisode(task, 2);
  const first = episode.observation().server;
  const later = actions.map((action) => {
    episode.step({ ...task.defaultAction, ...action });
    return episode.observation().server;
  });
  return [first, ...later];
}

/** Distance of two figures, by logarithm. */
const distance = (a: number, b: number) => Math.abs(Math.log(a / b));

describe('a server without a profile', () => {
  for (const profile of ['a100-40gb-llama-3-8b', 'h100-80gb-llama-3-8b', 'l4-24gb-llama-3-8b']) {
    it(`is identified in its first windows: ${profile}`, () => {
      const truth = llmserve.describeServer(llmserve.tasks.shipped[TASK], findProfile(profile));
      const windows = described(profile, [{}, { speculation_depth: 0 }, { kv_budget_fraction: 0.5 }, {}, {}]);
      const [first, last] = [windows[0]!, windows.at(-1)!];
      for (const figure of ['gpu_memory_gb', 'weights_gb', 'kv_tokens', 'usd_per_hour'] as const) {
        assert.ok(distance(first[figure], truth[figure]) < 0.01, `${figure} ${first[figure]}`);
      }
      for (const figure of ['decode_1_ms', 'decode_64_ms'] as const) {
        assert.ok(distance(first[figure], truth[figure]) > 0.3, `${figure} is not known at first`);
        assert.ok(distance(last[figure], truth[figure]) < 0.25, `${figure} ${last[figure]} ${truth[figure]}`);
      }
    });
  }

  it('has a profile of which the description is', () => {
    const task = llmserve.choose({ task_id: TASK });
    const own = serverOf(task);
    assert.equal(llmserve.describedProfile(task, own, llmserve.describeServer(task, own)), own);
    const windows = described('l4-24gb-llama-3-8b', [{}, { quantization_tier: 'INT8' }, {}]);
    const { free: _, ...last } = windows.at(-1)!;
    const again = llmserve.describeServer(task, llmserve.describedProfile(task, own, { ...last, free: _ }));
    for (const [figure, value] of Object.entries(last)) {
      const got = again[figure as keyof typeof last];
      assert.ok(got === value || distance(got, value) < 0.05, `${figure} ${got} ${value}`);
    }
  });
});
