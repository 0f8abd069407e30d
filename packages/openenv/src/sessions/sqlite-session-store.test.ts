import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { checkSqliteStore, openSqliteStore } from './sqlite-session-store.ts';

const environment = { id: 'counter', version: '1' };

function temporaryFile(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'sessions-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, 'sessions.db');
}

function openStore(t: TestContext, path: string, options?: Parameters<typeof openSqliteStore>[1]) {
  const store = openSqliteStore(path, options);
  t.after(() => store.close());
  return store;
}

test('what was written is there for the next process, with its last episode only', async (t) => {
  const path = temporaryFile(t);
  const first = openSqliteStore(path);
  const journal = first.open('a', environment);
  await journal.reset('old', { seed: 1 });
  await journal.step(0, { amount: 1 });
  await journal.reset('new', { seed: 2, target: 5 });
  await Promise.all([journal.step(0, { amount: 2 }), journal.step(1, { amount: 3, note: 'ü"' })]);
  await first.close();

  const second = openStore(t, path);
  const stored = await second.take('a');
  assert.deepEqual(stored && { ...stored, journal: undefined }, {
    environment,
    client: '',
    episodeId: 'new',
    reset: { seed: 2, target: 5 },
    actions: [{ amount: 2 }, { amount: 3, note: 'ü"' }],
    journal: undefined,
  });
  await stored?.journal.step(2, { amount: 4 });
  assert.equal((await second.take('a'))?.actions.length, 3);
  assert.equal(await second.take('unknown'), undefined);
});

test('a session belongs to who took it last; its former owner can write no more', async (t) => {
  const path = temporaryFile(t);
  const [one, two] = [openStore(t, path), openStore(t, path)];
  const before = one.open('a', environment);
  await before.reset('e', { seed: 1 });
  assert.equal(await before.isOwned(), true);
  const after = (await two.take('a'))!.journal;
  assert.equal(await before.isOwned(), false);
  await after.step(0, { amount: 1 });
  await assert.rejects(before.step(0, { amount: 9 }), { code: 'SESSION_TAKEN' });
  await assert.rejects(before.reset('f', { seed: 9 }), { code: 'SESSION_TAKEN' });
  await one.remove('a');
  assert.deepEqual((await one.take('a'))?.actions, [{ amount: 1 }]);
});

test('one entry that fails takes no other of its transaction with it', async (t) => {
  const path = temporaryFile(t);
  const [one, two] = [openStore(t, path), openStore(t, path)];
  const [lost, kept] = [one.open('lost', environment), one.open('kept', environment)];
  await Promise.all([lost.reset('e', { seed: 1 }), kept.reset('e', { seed: 1 })]);
  await two.take('lost');
  const outcomes = await Promise.allSettled([lost.step(0, 1), kept.step(0, 2)]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'fulfilled'],
  );
  assert.deepEqual((await one.take('kept'))?.actions, [2]);
});

test('a long reset, which a thread writes, is kept as a short one is', async (t) => {
  const store = openStore(t, temporaryFile(t));
  const column = Array.from({ length: 19_000 }, (_, i) => i / 60);
  class Name {
    toJSON() {
      return 'as JSON';
    }
  }
  const resets = [
    { seed: 1, trace: { column, none: undefined, zero: -0 } },
    { column, name: new Name() },
  ];
  for (const [index, options] of resets.entries()) {
    const journal = store.open(`${index}`, environment);
    await journal.reset('e', options);
    await journal.step(0, 1);
    const { reset, actions, damage } = (await store.take(`${index}`))!;
    assert.deepEqual(
      { reset, actions, damage },
      { reset: JSON.parse(JSON.stringify(options)), actions: [1], damage: undefined },
    );
  }
});

test('the log goes into the file while the server runs, on a thread', async (t) => {
  const path = temporaryFile(t);
  const store = openStore(t, path);
  const journal = store.open('a', environment);
  await journal.reset('e', {});
  for (let step = 0; step < 20; step++) await journal.step(step, 'x'.repeat(500_000));
  while (statSync(path).size < 5_000_000) await sleep(20);
});

test('a removed session is gone', async (t) => {
  const store = openStore(t, temporaryFile(t));
  await store.open('a', environment).reset('e', { seed: 1 });
  await store.remove('a');
  assert.equal(await store.take('a'), undefined);
});

test('sessions that nobody has used for the retention time are forgotten when a store opens', async (t) => {
  const path = temporaryFile(t);
  const first = openSqliteStore(path);
  const journal = first.open('a', environment);
  await journal.reset('e', { seed: 1 });
  await journal.step(0, 1);
  await first.close();
  const kept = openSqliteStore(path, { retentionMs: 3_600_000 });
  await kept.close();
  const database = new DatabaseSync(path);
  database.exec('UPDATE session SET used_at = used_at - 7200000');
  database.close();
  const second = openStore(t, path, { retentionMs: 3_600_000 });
  assert.equal(await second.take('a'), undefined);
});

test('a full file is told, and takes new entries again once there is room', async (t) => {
  const store = openStore(t, temporaryFile(t), { maxBytes: 64 * 1024 });
  const full = store.open('full', environment);
  await full.reset('e', { seed: 1 });
  let saved = 0;
  const error = await (async () => {
    for (; saved < 1000; saved++) await full.step(saved, { note: 'x'.repeat(1000) });
  })().catch((reason) => reason);
  assert.equal((error as { code?: string }).code, 'STORE_ERROR', String(error));
  assert.match(error.message, /could not be saved: the disk is full, or the file has reached its limit/);
  assert.equal((await store.take('full'))?.actions.length, saved);
  await store.remove('full');
  await store.open('next', environment).reset('e', { seed: 1 });
});

test('a locked database is waited for without stopping the process, and told when it stays locked', async (t) => {
  const path = temporaryFile(t);
  const patient = openStore(t, path, { lockTimeoutMs: 60_000 });
  const journal = patient.open('a', environment);
  await journal.reset('e', { seed: 1 });
  const other = new DatabaseSync(path);
  t.after(() => other.close());

  other.exec('BEGIN IMMEDIATE');
  const waiting = journal.step(0, 1);
  setTimeout(() => other.exec('ROLLBACK'), 20);
  await waiting;

  const hasty = openStore(t, path, { lockTimeoutMs: 200 });
  const taken = (await hasty.take('a'))!.journal;
  other.exec('BEGIN IMMEDIATE');
  await assert.rejects(taken.step(1, 2), /another process holds the database locked/);
  other.exec('ROLLBACK');
  assert.deepEqual((await hasty.take('a'))?.actions, [1]);
});

test('what is noted while another process holds the lock is written once it is free, in order', async (t) => {
  const path = temporaryFile(t);
  const store = openStore(t, path, { lockTimeoutMs: 60_000 });
  const journals = ['a', 'b'].map((id) => store.open(id, environment));
  await Promise.all(journals.map((journal) => journal.reset('e', { seed: 1 })));
  const other = new DatabaseSync(path);
  t.after(() => other.close());
  other.exec('BEGIN IMMEDIATE');
  const noted: Promise<void>[] = [];
  for (let step = 0; step < 5; step++) {
    for (const journal of journals) noted.push(journal.step(step, step));
    await new Promise(setImmediate);
  }
  other.exec('ROLLBACK');
  await Promise.all(noted);
  for (const id of ['a', 'b']) assert.deepEqual((await store.take(id))?.actions, [0, 1, 2, 3, 4]);
});

test('two processes write to one file at full speed for seven seconds, and none waits for ever', async (t) => {
  const path = temporaryFile(t);
  await openSqliteStore(path).close();
  const program = fileURLToPath(new URL('../fixtures/store-writer.ts', import.meta.url));
  const run = promisify(execFile);
  const outputs = await Promise.all(
    // Longer than an entry waits for a lock.
    ['one', 'two'].map((name) => run(process.execPath, [program, path, name, '7'])),
  );
  const store = openStore(t, path);
  for (const { stdout } of outputs) {
    const played = Object.entries<number>(JSON.parse(stdout));
    assert.equal(played.length, 20);
    for (const [id, steps] of played) assert.equal((await store.take(id))?.actions.length, steps);
  }
});

/** Plays twenty sessions of fifty steps each, and answers their ids. */
async function played(path: string): Promise<{ ids: string[]; close: () => Promise<void> }> {
  const store = openSqliteStore(path);
  const ids = Array.from({ length: 20 }, (_, number) => `session-${number}`);
  await Promise.all(
    ids.map(async (id) => {
      const journal = store.open(id, environment);
      await journal.reset('episode', { seed: 1 });
      for (let step = 0; step < 50; step++) await journal.step(step, { amount: step });
    }),
  );
  return { ids, close: () => store.close() };
}

/** Asserts that each session is whole, or told to be damaged or unknown. Answers how many are whole. */
async function wholeOrTold(path: string, ids: readonly string[]): Promise<number> {
  const store = openSqliteStore(path);
  let whole = 0;
  for (const id of ids) {
    const stored = await store.take(id).catch((error) => {
      assert.ok(['SESSION_DAMAGED', 'STORE_ERROR'].includes(error.code), error);
      return undefined;
    });
    if (stored === undefined || stored.damage !== undefined) continue;
    assert.equal(stored.actions.length, 50);
    whole++;
  }
  await store.close();
  return whole;
}

test('a log that was cut makes no session shorter in silence', async (t) => {
  const path = temporaryFile(t);
  const { ids, close } = await played(path);
  for (const share of [0.1, 0.5, 0.9, 1]) {
    const copy = join(dirname(path), `copy-${share}`, 'sessions.db');
    for (const end of ['', '-wal', '-marks']) cpSync(path + end, copy + end);
    truncateSync(`${copy}-wal`, Math.floor(statSync(`${copy}-wal`).size * share));
    assert.equal(await wholeOrTold(copy, ids), share === 1 ? 20 : 0);
  }
  await close();
});

test('random bytes in the file make no session shorter in silence', async (t) => {
  const path = temporaryFile(t);
  const { ids, close } = await played(path);
  await close();
  const { size } = statSync(path);
  let whole = 0;
  for (let place = 0; place < 12; place++) {
    const copy = join(dirname(path), `copy-${place}`, 'sessions.db');
    for (const end of ['', '-marks']) cpSync(path + end, copy + end);
    const file = openSync(copy, 'r+');
    const bytes = Buffer.from(Array.from({ length: 64 }, (_, i) => (i * 73 + place * 31) % 256));
    writeSync(file, bytes, 0, bytes.length, 2048 + Math.floor((place / 12) * (size - 4096)));
    closeSync(file);
    try {
      whole += await wholeOrTold(copy, ids);
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'STORE_ERROR', String(error));
    }
  }
  assert.ok(whole < 12 * 20);
});

test('a clock that is a week ahead deletes no session', async (t) => {
  const path = temporaryFile(t);
  const { ids, close } = await played(path);
  await close();
  const now = Date.now();
  t.mock.method(Date, 'now', () => now + 8 * 86_400_000);
  assert.equal(await wholeOrTold(path, ids), 20);
});

test('a file that has become large is pruned, the most of one client first, and gives its room back', async (t) => {
  const path = temporaryFile(t);
  const maxBytes = 40 * 2 ** 20;
  const store = openStore(t, path, { maxBytes, maxClientBytes: maxBytes, restMs: -60_000 });
  await store.open('small', environment, 'ada').reset('e', { seed: 1 });
  const reset = { trace: randomBytes(0.75 * 2 ** 20).toString('base64') };
  for (let session = 0; session < 60; session++) {
    await store.open(`large-${session}`, environment, 'eve').reset('e', reset);
    assert.ok(statSync(path).size <= maxBytes);
  }
  assert.notEqual(await store.take('small'), undefined);
  assert.equal(await store.take('large-0'), undefined);
  assert.notEqual(await store.take('large-59'), undefined);
  const full = store.condition!().bytes!;
  for (let session = 0; session < 60; session++) {
    if (await store.take(`large-${session}`)) await store.remove(`large-${session}`);
  }
  await store.close();
  const again = openSqliteStore(path, { maxBytes });
  await again.close();
  const { size } = statSync(path);
  assert.ok(size < full / 4, `${size} of ${full} bytes`);
});

test('a file with pages of another size is used as it is', async (t) => {
  const path = temporaryFile(t);
  const old = new DatabaseSync(path);
  old.exec('PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; CREATE TABLE something (x)');
  old.close();
  const first = openSqliteStore(path);
  const journal = first.open('a', environment);
  await journal.reset('e', { seed: 1 });
  await journal.step(0, { text: 'x'.repeat(10_000) });
  await first.close();
  assert.equal((await openStore(t, path).take('a'))?.actions.length, 1);
});

test('a file that cannot be used says why', async (t) => {
  const path = temporaryFile(t);
  assert.throws(
    () => openSqliteStore(join(path, 'nowhere.db')),
    /Could not open the sessions in .*nowhere\.db/,
  );
  writeFileSync(path, 'this is no database'.repeat(100));
  assert.throws(() => openSqliteStore(path), { code: 'STORE_ERROR' });
  const newer = join(path, '..', 'newer.db');
  const database = new DatabaseSync(newer);
  database.exec('PRAGMA user_version = 99');
  database.close();
  assert.throws(
    () => openSqliteStore(newer),
    /its sessions have format 99, this version reads formats up to 3\. Use the version/,
  );
});

test('sessions of format 1, which no published version had, are refused with a sentence', (t) => {
  const path = temporaryFile(t);
  const former = new DatabaseSync(path);
  former.exec('CREATE TABLE session (key INTEGER PRIMARY KEY) STRICT; PRAGMA user_version = 1;');
  former.close();
  const message = /its sessions have format 1, which this version reads no more\. Choose another file/;
  assert.throws(() => openSqliteStore(path), { code: 'STORE_ERROR', message });
});

test('sessions go on beside the runs of a leaderboard, which servers kept in the same file once', async (t) => {
  const path = temporaryFile(t);
  const { ids, close } = await played(path);
  await close();
  const former = new DatabaseSync(path);
  former.exec(`CREATE TABLE leaderboard_run (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
    INSERT INTO leaderboard_run VALUES (1, 'Ada'); INSERT INTO store_format VALUES ('runs', 5)`);
  former.close();
  assert.deepEqual(checkSqliteStore(path), { sessions: 20, problems: [] });
  assert.equal(await wholeOrTold(path, ids), 20);
});

test('sessions of format 2 go on, also beside the tables of servers that files had once', async (t) => {
  const path = temporaryFile(t);
  const { ids, close } = await played(path);
  await close();
  const former = new DatabaseSync(path);
  former.exec(`PRAGMA user_version = 2; DROP TABLE store_format; CREATE TABLE store_user (owner TEXT); CREATE TABLE server (
    owner TEXT PRIMARY KEY, process INTEGER NOT NULL, host TEXT NOT NULL, program TEXT NOT NULL, is_open INTEGER NOT NULL
  ) STRICT`);
  former.close();
  assert.deepEqual(checkSqliteStore(path), { sessions: 20, problems: [] });
  assert.equal(await wholeOrTold(path, ids), 20);
});

/** A log that keeps its errors. */
function errorLog() {
  const errors: string[] = [];
  const logger = { info() {}, warn() {}, error: (_: object, message: string) => void errors.push(message) };
  return { errors, logger };
}

for (const [what, damage, told] of [
  ['whose header is damaged', (path: string) => writeAt(path, 0, 100), /cannot be read: the file is damaged/],
  ['cut to zero', (path: string) => truncateSync(path, 0), /is missing or empty, and held up to 20 sessions/],
  ['that is gone', (path: string) => rmSync(path), /is missing or empty, and held up to 20 sessions/],
] as const) {
  test(`a file ${what} is set aside with a sentence, and a new one begun`, async (t) => {
    const path = temporaryFile(t);
    await (await played(path)).close();
    damage(path);
    const { errors, logger } = errorLog();
    for (let start = 0; start < 2; start++) await openSqliteStore(path, { logger }).close();
    assert.equal(errors.length, 1);
    assert.match(errors[0]!, told);
    assert.match(errors[0]!, /set aside as .*sessions\.db\.damaged-1, and a new file is begun/);
    assert.ok(statSync(`${path}.damaged-1-marks`).size > 0);
    await openStore(t, path).open('a', environment).reset('e', { seed: 1 });
  });
}

test('a file that no marks show to be ours is never moved', (t) => {
  const path = temporaryFile(t);
  writeFileSync(path, 'a letter to Ada'.repeat(100));
  assert.throws(() => openSqliteStore(path), { code: 'STORE_ERROR', message: /file is not a database/ });
  assert.equal(existsSync(path), true);
});

test('the check of a file names what is damaged and changes nothing', async (t) => {
  const path = temporaryFile(t);
  assert.throws(() => checkSqliteStore(path), { code: 'STORE_ERROR', message: /There is no file/ });
  await (await played(path)).close();
  assert.deepEqual(checkSqliteStore(path), { sessions: 20, problems: [] });
  const database = new DatabaseSync(path);
  database.exec(`UPDATE entry SET text = '{}' WHERE session = 2 AND step = 7;
    DELETE FROM entry WHERE session = 3 AND step > 47`);
  database.close();
  const size = statSync(path).size;
  const { sessions, problems } = checkSqliteStore(path);
  assert.deepEqual(
    [sessions, problems],
    [
      20,
      [
        'Session session-... is damaged: step 7 was changed.',
        'Session session-... is damaged: its last 2 entries are missing.',
      ],
    ],
  );
  assert.equal(statSync(path).size, size);
  truncateSync(path, 0);
  assert.match(checkSqliteStore(path).problems.join(), /no sessions in it; its marks tell of up to 20/);
  assert.equal(statSync(path).size, 0);
});

function writeAt(path: string, position: number, length: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(length, 0x5a), 0, length, position);
  closeSync(file);
}
