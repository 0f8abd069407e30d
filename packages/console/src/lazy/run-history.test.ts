import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { csvOf } from '../panels/csv.ts';
import { firstFrame, nextFrame } from '../state/frame.ts';
import {
  createRunHistory,
  type KeptRun,
  readEpisodeFile,
  readEpisodeLink,
  rowsOf,
  writeEpisodeLink,
} from './run-history.ts';

function fakeStorage(first?: string) {
  let text = first ?? null;
  return {
    getItem: () => text,
    setItem: (_: string, value: string) => {
      text = value;
    },
  };
}

const run = (id: number, more: Partial<KeptRun> = {}): KeptRun => ({
  ...{ id: String(id), at: id, environment: 'llmserve', options: {}, player: 'By hand' },
  ...{ windows: 60, total: id },
  ...more,
});

describe('the history of runs', () => {
  it('keeps the newest, and those that are pinned', () => {
    const storage = fakeStorage();
    const history = createRunHistory(() => storage);
    for (let id = 0; id < 10; id++) history.add(run(id));
    history.change('3', { isPinned: true, name: 'best' });
    for (let id = 10; id < 60; id++) history.add(run(id));
    const ids = history.runs.value.map(({ id }) => Number(id));
    assert.deepEqual(ids, [...Array.from({ length: 30 }, (_, i) => 59 - i), 3]);
    const again = createRunHistory(() => storage);
    assert.deepEqual(again.runs.value, history.runs.value);
    assert.equal(again.runs.value.at(-1)?.name, 'best');
    again.remove('3');
    assert.equal(createRunHistory(() => storage).runs.value.length, 30);
  });

  it('takes in what another tab has kept, and pins no more than twenty', () => {
    const storage = fakeStorage();
    const [one, other] = [createRunHistory(() => storage), createRunHistory(() => storage)];
    for (let id = 0; id < 25; id++) one.add(run(id));
    other.add(run(25));
    assert.equal(other.runs.value.length, 26);
    for (let id = 0; id < 25; id++) other.change(String(id), { isPinned: true });
    assert.equal(other.runs.value.filter(({ isPinned }) => isPinned).length, 20);
  });

  for (const text of ['{', 'null', '[null, {"id": 1}]', '{"a":1}']) {
    it(`starts empty where ${text} is kept`, () => {
      const storage = fakeStorage(text);
      const history = createRunHistory(() => storage);
      assert.deepEqual(history.runs.value, []);
      history.add(run(1));
      assert.equal(createRunHistory(() => storage).runs.value.length, 1);
    });
  }

  it('lasts as long as the page where nothing can be kept', () => {
    const history = createRunHistory(() => {
      throw new DOMException('denied', 'SecurityError');
    });
    history.add(run(1));
    history.add(run(2));
    assert.equal(history.runs.value.length, 2);
  });
});

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

describe('the CSV of a run', () => {
  it('has a row for each window, and quotes what would end a cell', () => {
    const outcome = { reward: null, done: false, metadata: { window_s: 5 } };
    const start = firstFrame({ ...outcome, observation: { queue: 0, classes: { batch: { waiting: 2 } } } });
    const step = nextFrame(start, {
      ...outcome,
      reward: 0.5,
      action: { cap: 8, tier: 'a,"b"' },
      observation: { queue: 3, sizes: [1, 2], reward: 0.5 },
    });
    assert.deepEqual(csvOf(rowsOf([start, step])).split('\r\n'), [
      'window,time_s,reward,return,queue,classes.batch.waiting,action.cap,action.tier,sizes',
      '0,0,,0,0,2,,,',
      '1,5,0.5,0.5,3,,8,"a,""b""","[1,2]"',
      '',
    ]);
  });
});
