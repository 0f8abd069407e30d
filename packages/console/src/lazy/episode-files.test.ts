import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { readEpisodeFile, readEpisodeLink, writeEpisodeLink } from './episode-files.ts';

const file = (actions: readonly Record<string, unknown>[]) => ({
  format: 'openenv-episode/1',
  environment: { id: 'llmserve', version: '0.1.0' },
  reset: { task_id: 'bursty_workload', seed: 3 },
  actions,
  digest: `sha256:${'0'.repeat(64)}`,
});

describe('the link of an episode', () => {
  it('gives the episode back bit for bit, in characters that links may have', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { maxLength: 40 }),
        async (actions) => {
          const plain = JSON.parse(JSON.stringify(file(actions)));
          const link = await writeEpisodeLink(plain);
          assert.match(link, /^#episode=[\w-]+$/);
          assert.deepEqual(await readEpisodeLink(link), plain);
        },
      ),
      { numRuns: 50 },
    );
  });

  it('of a long episode of like actions is short enough to send', async () => {
    const action = { batch_cap: 96, kv_budget_fraction: 0.5, quantization_tier: 'INT8' };
    const link = await writeEpisodeLink(
      file(Array.from({ length: 500 }, (_, i) => ({ ...action, batch_cap: i }))),
    );
    assert.ok(link.length < 6000, `${link.length} characters`);
  });

  it('that was cut or changed is told to be damaged', async () => {
    const link = await writeEpisodeLink(file([{ a: 1 }, { a: 2 }]));
    for (const bad of [
      link.slice(0, -20),
      `${link.slice(0, 20)}!${link.slice(21)}`,
      '#episode=',
      '#episode=AAAA',
    ])
      await assert.rejects(readEpisodeLink(bad), /The link is damaged/);
  });
});

describe('an episode file', () => {
  it('that is something else is told what was expected', () => {
    assert.throws(() => readEpisodeFile('no JSON'), /Expected an episode file, which is JSON/);
    for (const text of ['null', '[]', '{"actions": []}', '{"reset": {}}'])
      assert.throws(() => readEpisodeFile(text), /with `reset` and `actions`/);
  });
});
