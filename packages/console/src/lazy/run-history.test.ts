import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createRunHistory, type KeptRun } from './run-history.ts';

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
