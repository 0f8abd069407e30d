import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, it } from 'node:test';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { ask as askServer } from '../fixtures/start-server.ts';
import { createServer } from '../server/create-server.ts';
import { mountEpisodeRoutes } from '../server/episode-routes.ts';
import {
  checkStore,
  Leaderboard,
  mountLeaderboardRoutes,
  RUNS_PER_BOARD,
  RUNS_PER_CLIENT,
} from './leaderboard.ts';

const server = createServer(counterEnvironment);
const runs = mkdtempSync(join(tmpdir(), 'leaderboard-'));
mountEpisodeRoutes(server);
mountLeaderboardRoutes(server, join(runs, 'runs.db'));
after(async () => {
  await server.close();
  rmSync(runs, { recursive: true });
});

const ask = (path: string, body?: unknown) => askServer(server, path, body);

/** Plays `short` to its end with steps of one size. */
async function finished(amount: number, seed = 0, options = {}): Promise<string> {
  const { body } = await ask('/reset', { seed, task_id: 'short', ...options });
  let done = false;
  while (!done) {
    ({
      body: { done },
    } = await ask('/step', { session_id: body.session_id, action: { amount } }));
  }
  return body.session_id;
}

describe('the leaderboard', () => {
  it('ranks runs of the same seed by the scores that the server gives them', async () => {
    const worse = await ask('/leaderboard', { session_id: await finished(10, 1), name: 'Ada' });
    const better = await ask('/leaderboard', { session_id: await finished(9, 1), name: 'Bob' });
    assert.equal(worse.status, 200);
    assert.equal(better.body.entry.rank <= 2, true);
    const { body } = await ask('/leaderboard?task_id=short');
    assert.match(body.note, /A rank here proves nothing/);
    const scores = body.entries.map(({ score }: { score: number }) => score);
    assert.deepEqual(
      scores,
      scores.toSorted((a: number, b: number) => b - a),
    );
    assert.deepEqual(
      body.entries.map(({ rank }: { rank: number }) => rank),
      [1, 2],
    );
  });

  it('does not rank a run on a lucky seed before one on another seed', async () => {
    await ask('/leaderboard', { session_id: await finished(10, 81), name: 'Ada' });
    const lucky = await ask('/leaderboard', { session_id: await finished(1, 82), name: 'Bob' });
    const { body } = await ask('/leaderboard?seed=81');
    assert.deepEqual([lucky.body.entry.rank, body.entries[0].rank], [1, 1]);
  });

  it('shows no score that rests on an estimate, and tells the split of a seed', async (t) => {
    const estimating = createServer({
      ...counterEnvironment,
      splitOf: ({ seed }: { readonly seed?: number }) => (seed === 3 ? 'test' : undefined),
      grade: async (record) => ({ ...(await counterEnvironment.grade!(record as never)), estimated: true }),
    });
    mountLeaderboardRoutes(estimating, ':memory:');
    t.after(() => estimating.close());
    const play = async (seed: number) => {
      const { body } = await askServer(estimating, '/reset', { seed, task_id: 'short' });
      let done = false;
      while (!done) {
        const step = { session_id: body.session_id, action: { amount: 9 } };
        done = (await askServer(estimating, '/step', step)).body.done;
      }
      return askServer(estimating, '/leaderboard', { session_id: body.session_id, name: 'Ada' });
    };
    assert.equal((await play(3)).body.entry.score, null);
    assert.equal((await play(4)).body.entry.split, null);
    const { body } = await askServer(estimating, '/leaderboard?split=test');
    assert.deepEqual(
      body.entries.map(({ seed, split }: { seed: number; split: string }) => [seed, split]),
      [[3, 'test']],
    );
  });

  it('gives the episode of a run, which replays to the digest on the board', async () => {
    const { body } = await ask('/leaderboard', { session_id: await finished(7, 3), name: 'Eve' });
    const { body: file } = await ask(`/leaderboard/${body.entry.id}`);
    assert.equal(file.author, 'Eve');
    const opened = await ask('/episodes', file);
    assert.equal(opened.body.verified, true);
    assert.equal(opened.body.digest, body.entry.digest);
  });

  it('takes the same run of the same person once', async () => {
    const first = await ask('/leaderboard', { session_id: await finished(6, 4), name: 'Ada' });
    const again = await ask('/leaderboard', { session_id: await finished(6, 4), name: 'Ada' });
    assert.equal(again.body.entry.id, first.body.entry.id);
  });

  it('takes no episode that is not over, and no name that says nothing', async () => {
    const { body } = await ask('/reset', { seed: 1, task_id: 'short' });
    const open = await ask('/leaderboard', { session_id: body.session_id, name: 'Ada' });
    assert.equal(open.status, 409);
    assert.equal(open.body.code, 'EPISODE_NOT_OVER');
    assert.equal((await ask('/leaderboard', { session_id: body.session_id, name: '  ' })).status, 422);
    assert.equal((await ask('/leaderboard', { session_id: 'nobody', name: 'Ada' })).status, 404);
    assert.equal((await ask('/leaderboard/999999')).status, 404);
    assert.deepEqual(await ask('/leaderboard/first'), { status: 404, body: { detail: 'Not Found' } });
    const refused = await ask('/leaderboard?seed=x');
    assert.deepEqual([refused.status, refused.body.detail[0].loc], [422, ['query', 'seed']]);
  });

  it('holds runs only against runs of the same scenario', async () => {
    const session_id = await finished(1, 60, { target: 11 });
    const { body } = await ask('/leaderboard', { session_id, name: 'Ada' });
    assert.deepEqual([body.entry.rank, body.entry.scenario], [1, '{"target":11}']);
  });

  it('filters by task and seed, and shows runs of its own version only', async () => {
    await ask('/leaderboard', { session_id: await finished(5, 50), name: 'Ada' });
    const { body } = await ask('/leaderboard?seed=50');
    assert.equal(body.entries.length, 1);
    assert.deepEqual((await ask('/leaderboard?task_id=long')).body.entries, []);
    const leaderboard = new Leaderboard(join(runs, 'runs.db'));
    assert.equal(leaderboard.list({ id: 'counter', version: '1' }).entries.length > 0, true);
    assert.deepEqual(leaderboard.list({ id: 'counter', version: '2' }), { entries: [], next: null });
    leaderboard.close();
  });
});

/** A run of the counter; runs of different numbers differ. */
function run(client: string, number: number, score: number, options = {}) {
  return {
    ...{ name: `${client} ${number}`, client, score, return: 0, windows: 1 },
    episode: {
      format: 'openenv-episode/1' as const,
      environment: { id: 'counter', version: '1' },
      reset: { seed: 1, ...options },
      actions: [],
      digest: `sha256:${client}-${number}`,
    },
  };
}

describe('a full board', () => {
  const COUNTER = { id: 'counter', version: '1' };

  /** All runs, page by page. */
  function kept(board: Leaderboard, query: Parameters<Leaderboard['list']>[1] = {}) {
    const runs = [];
    for (let after: string | null | undefined; after !== null; ) {
      const { entries, next } = board.list(COUNTER, { ...query, after });
      runs.push(...entries);
      after = next;
    }
    return runs;
  }

  it('is listed in pages, which together are the whole list with its ranks', async () => {
    const board = new Leaderboard(':memory:', {
      splitOf: ({ seed }) => (seed === 1 ? 'train' : undefined),
    });
    for (let i = 0; i < 240; i++) {
      await board.save(run(`client ${i % 24}`, i, ((i * 7) % 240) / 240, { target: 1 + (i % 3) }));
    }
    assert.equal(board.list(COUNTER).entries.length, 100);
    const whole = kept(board);
    assert.deepEqual(
      whole.map(({ scenario, rank }) => [scenario, rank]),
      [1, 2, 3].flatMap((target) => Array.from({ length: 80 }, (_, i) => [`{"target":${target}}`, i + 1])),
    );
    assert.ok(whole.every(({ score }, i) => whole[i].rank === 1 || score! <= whole[i - 1].score!));
    assert.deepEqual(kept(board, { limit: 7 }), whole);
    assert.deepEqual(kept(board, { split: 'train', limit: 33 }), whole);
    assert.deepEqual(kept(board, { seed: 2 }), []);
    assert.throws(() => board.list(COUNTER, { after: 'nonsense' }), { code: 'VALIDATION_ERROR' });
    board.close();
  });

  it('keeps the best runs and says of the others that they are not on it', async () => {
    const board = new Leaderboard(':memory:');
    const save = (i: number, score: number) => board.save(run(`client ${i % 10}`, i, score));
    for (let i = 1; i <= RUNS_PER_BOARD; i++) assert.equal((await save(i, i / 1000))?.rank, 1);
    assert.equal(await save(200, 0.0001), undefined);
    assert.equal((await save(201, 0.9))?.rank, 1);
    assert.equal(kept(board).length, RUNS_PER_BOARD);
    assert.equal(kept(board).at(-1)?.score, 0.002);
    board.close();
  });

  it('keeps the run of a person whatever one other client saves', async () => {
    const board = new Leaderboard(':memory:');
    await board.save(run('victim', 1, 0.3));
    await board.save(run('victim', 2, 0.3, { target: 7 }));
    for (let i = 0; i < 300; i++) {
      await board.save(run('spam', i, 0.9));
      await board.save(run('spam', 1000 + i, 0.9, { target: 100 + i }));
    }
    const own = kept(board).filter(({ name }) => name.startsWith('victim'));
    assert.deepEqual(own.map(({ scenario }) => scenario).sort(), ['', '{"target":7}']);
    assert.equal(kept(board).filter(({ scenario }) => scenario === '').length, 1 + RUNS_PER_CLIENT);
    assert.ok(kept(board).length < 50);
    board.close();
  });

  it('gives up the boards with the lowest scores, not those that came first', async () => {
    const board = new Leaderboard(':memory:', { boards: 100 });
    for (let i = 0; i < 150; i++) {
      await board.save(run(`client ${i % 15}`, i, (150 - i) / 1000, { target: i + 1 }));
    }
    const scores = kept(board).map(({ score }) => score!);
    assert.equal(scores.length, 100);
    assert.equal(Math.min(...scores), 51 / 1000);
    board.close();
  });

  it('limits the length of a client’s episodes, and the number of runs in a minute', async () => {
    const board = new Leaderboard(':memory:');
    for (let i = 0; i < 40; i++) {
      await board.save(run('long', i, i / 100, { trace: 'x'.repeat(2 ** 20), target: i + 1 }));
    }
    assert.ok(kept(board).length <= 16);
    assert.equal(Math.max(...kept(board).map(({ score }) => score!)), 0.39);
    board.close();
    const session_id = await finished(8, 70);
    const statuses = new Set<number>();
    for (let i = 0; i < 70; i++)
      statuses.add((await ask('/leaderboard', { session_id, name: 'Ada' })).status);
    assert.deepEqual([...statuses], [200, 429]);
  });

  it('waits for a locked file without stopping the server, and says when it stays locked', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'leaderboard-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'sessions.db');
    const board = new Leaderboard(path);
    const hasty = new Leaderboard(path, { lockTimeoutMs: 20 });
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    const saving = board.save(run('ada', 1, 0.5));
    await assert.rejects(hasty.save(run('bob', 1, 0.5)), {
      code: 'STORE_ERROR',
      message: /could not be saved: another process holds the database locked/,
    });
    other.exec('ROLLBACK');
    assert.equal((await saving)?.rank, 1);
    for (const open of [board, hasty, other]) open.close();
  });
});

describe('a leaderboard of a former format', () => {
  const columns = (
    more: string,
  ) => `id INTEGER PRIMARY KEY, environment TEXT NOT NULL, task TEXT NOT NULL, ${more}
    name TEXT NOT NULL, seed INTEGER NOT NULL, score REAL, return REAL NOT NULL, windows INTEGER NOT NULL,
    digest TEXT NOT NULL, episode TEXT NOT NULL,`;
  const scenario = 'scenario TEXT NOT NULL,';
  const client = 'client TEXT NOT NULL,';
  for (const [format, table, more, bytes, unique] of [
    [1, 'leaderboard', '', '', 'environment, task, name, digest'],
    [2, 'leaderboard', scenario, '', 'environment, task, scenario, name, digest'],
    [3, 'leaderboard_run', scenario, '', 'environment, task, scenario, name, digest'],
    [
      4,
      'leaderboard_run',
      scenario + client,
      'bytes INTEGER NOT NULL,',
      'environment, task, scenario, name, digest',
    ],
    [
      5,
      'leaderboard_run',
      scenario + client,
      'bytes INTEGER NOT NULL,',
      'environment, task, scenario, seed, name, digest',
    ],
  ] as const) {
    it(`${format} keeps its runs and takes new ones`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'leaderboard-'));
      t.after(() => rmSync(folder, { recursive: true }));
      const path = join(folder, 'sessions.db');
      const former = new DatabaseSync(path);
      const index = format === 5 ? `${table}_board` : `${table}_rank`;
      former.exec(`CREATE TABLE ${table} (${columns(more)} ${bytes} saved_at INTEGER NOT NULL, UNIQUE (${unique})) STRICT;
        CREATE INDEX ${index} ON ${table} (environment, task, score DESC, return DESC);
        ${format >= 4 ? `CREATE INDEX ${table}_client ON ${table} (client);` : ''}`);
      const text = JSON.stringify(run('ada', 1, 0.5).episode);
      const values = {
        environment: 'counter 1',
        task: '',
        name: 'ada',
        seed: 1,
        score: 0.5,
        return: 2,
        windows: 3,
      };
      const row = {
        ...{ ...values, digest: 'd', episode: text, saved_at: 4 },
        ...(format >= 2 && { scenario: '' }),
        ...(format >= 4 && { client: 'c', bytes: text.length }),
      };
      former
        .prepare(`INSERT INTO ${table} (${Object.keys(row)}) VALUES (${Object.keys(row).map(() => '?')})`)
        .run(...Object.values(row));
      former.close();
      for (let start = 0; start < 2; start++) {
        const board = new Leaderboard(path);
        assert.equal((await board.save(run('bob', 1, 0.9)))?.rank, 1);
        const { entries: kept } = board.list({ id: 'counter', version: '1' });
        assert.deepEqual(
          kept.map(({ name, seed, score, windows }) => [name, seed, score, windows]),
          [
            ['bob 1', 1, 0.9, 1],
            ['ada', 1, 0.5, 3],
          ],
        );
        assert.equal(board.episode(kept[1]!.id)?.author, 'ada');
        board.close();
      }
    });
  }

  it('that this version does not know is refused, and left as it is', () => {
    const path = join(runs, 'newer.db');
    const newer = new DatabaseSync(path);
    newer.exec(
      "CREATE TABLE store_format (part TEXT PRIMARY KEY, format INTEGER); INSERT INTO store_format VALUES ('runs', 9)",
    );
    newer.close();
    const message =
      /Could not open the leaderboard .*its runs have format 9, this version reads formats up to 5/;
    assert.throws(() => new Leaderboard(path), { code: 'STORE_ERROR', message });
    assert.match(checkStore(path).problems.join(), /its runs have format 9/);
  });
});
