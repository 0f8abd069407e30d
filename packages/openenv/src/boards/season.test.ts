import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, it, type TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { ask as askServer, startServer } from '../fixtures/start-server.ts';
import type { EnvironmentDefinition } from '../protocol/definition.ts';
import { createServer } from '../server/create-server.ts';
import { mountSeasonRoutes, seasonEnvironment } from './season-environment.ts';
import { SeasonLedger, seedOf } from './season-ledger.ts';
import { actionDigest } from './season-receipt.ts';
import { closeSeason, graderScoring, type SeasonScoring, verifySeason } from './season-results.ts';

const folder = mkdtempSync(join(tmpdir(), 'season-'));
after(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = () => join(folder, `season-${files++}.db`);

const definition = counterEnvironment as EnvironmentDefinition;
const RULES = {
  name: 'spring',
  environment: { id: 'counter', version: '1' },
  task_ids: ['short'],
  episodes: 20,
  minutes: 10,
};

/** A season that is served in process, with a submission. */
function season(t: TestContext, { path = newFile(), now = Date.now } = {}) {
  const ledger = SeasonLedger.create(path, RULES, now);
  const { token } = ledger.admit('Ada');
  const served = serveSeason(ledger);
  t.after(async () => {
    await served.server.close();
    ledger.close();
  });
  return { path, ledger, token, ...served };
}

function serveSeason(ledger: SeasonLedger) {
  const server = createServer(seasonEnvironment(definition, ledger, { resetMs: 0 }), {
    store: ledger.store(),
  });
  mountSeasonRoutes(server, ledger);
  const ask = (path: string, body?: unknown) => askServer(server, path, body);
  const step = (session_id: string, amount = 9) => ask('/step', { session_id, action: { amount } });
  const playOut = async (submission: string, amount = 9) => {
    const { body } = await ask('/reset', { submission });
    let done = false;
    while (!done) ({ done } = (await step(body.session_id, amount)).body);
    return body.session_id as string;
  };
  return { server, ask, step, playOut };
}

describe('a season', () => {
  it('is played over the wire, closed, and verified by anybody', async (t) => {
    const { ledger, token, ask, playOut } = season(t);
    const { body: rules } = await ask('/season');
    assert.equal(rules.commitment, ledger.rules.commitment);
    const other = ledger.admit('Bob').token;
    for (let i = 0; i < 20; i++) await playOut(token, 10);
    for (let i = 0; i < 3; i++) await playOut(other);
    const { body: progress } = await ask('/season/progress', { submission: token });
    assert.deepEqual(progress.tasks, [{ task_id: 'short', opened: 20, finished: 20, episodes: 20 }]);

    const scoring = graderScoring(definition);
    const results = await closeSeason(ledger, definition, scoring);
    assert.deepEqual(await verifySeason(results, definition, scoring, { commitment: rules.commitment }), []);
    const [ada, bob] = results.submissions;
    assert.ok(ada!.episodes.every(({ done }) => done));
    assert.equal(
      new Set(results.submissions.flatMap(({ episodes }) => episodes.map(({ seed }) => seed))).size,
      40,
    );
    // What was never opened counts as played by nobody.
    assert.equal(bob!.episodes.filter(({ actions }) => actions.length === 0).length, 17);
    assert.equal((await ask('/reset', { submission: token })).body.code, 'SEASON_CLOSED');
  });

  it('is not taken for right when seeds, actions, scores, secrets or submissions were changed', async (t) => {
    const { ledger, token, playOut } = season(t);
    ledger.admit('Bob');
    await playOut(token);
    const anchored: SeasonScoring = {
      ...graderScoring(definition),
      anchors: async (resets) =>
        resets.map(() => ({
          default: { return: 0, actions: [{ amount: 10 }] },
          clairvoyant: { return: 0, actions: [{ amount: 10 }] },
        })),
    };
    const honest = graderScoring(definition);
    const results = await closeSeason(ledger, definition, honest);
    const [ada, bob] = results.submissions;
    const [first, ...rest] = ada!.episodes;
    const changed = (episode: object) => ({
      ...results,
      submissions: [{ ...ada!, episodes: [{ ...first!, ...episode }, ...rest] }, bob!],
    });
    const problems = async (forged: typeof results, options = {}, scoring = honest) =>
      (await verifySeason(forged, definition, scoring, options)).join(' ');
    assert.match(await problems(changed({ seed: first!.seed + 1 })), /does not come from the secret/);
    assert.match(await problems(changed({ actions: [] })), /the replay came out otherwise/);
    assert.match(await problems(changed({ actions: [{ amount: 'x' }] })), /Ada, short 0/);
    assert.match(await problems(changed({ score: 0.999 })), /expected return .* and score/);
    assert.match(await problems({ ...results, secret: 'f'.repeat(64) }), /are not those of the commitment/);
    assert.match(await problems(results, { commitment: 'e'.repeat(64) }), /The commitment was/);
    assert.match(await problems({ ...results, submissions: [bob!] }), /Expected submission 1, got 2/);
    assert.match(
      await problems({ ...results, submissions: [{ ...ada!, episodes: rest }, bob!] }),
      /expected 20 episodes of each task/,
    );
    const withAnchors = changed({ anchors: (await anchored.anchors([{}]))[0] });
    assert.match(await problems(withAnchors), /the clairvoyant earns [\d.]+, not 0/);
    assert.match(await problems(results, { anchorsAnew: true }, anchored), /the anchors are not those/);
  });

  it('cannot be forged by its operator: rules, names, submissions and actions are under commitment and receipts', async (t) => {
    const { path, ledger, token, ask, step, playOut } = season(t);
    const bobs = ledger.admit('Bob').token;
    const { body: published } = await ask('/season');
    assert.equal(published.submissions, 2);
    await playOut(token, 10);
    const session = await playOut(bobs, 3);
    // Two episodes at a time: the order of the actions counts, too.
    const two = await Promise.all([1, 2].map(() => ask('/reset', { submission: token })));
    for (const amount of [1, 2, 3]) for (const { body } of two) await step(body.session_id, amount);
    const receiptFor = async (submission: string) =>
      (await ask('/season/progress', { submission })).body.receipt as string;
    const early = await receiptFor(token);
    await step(two[0]!.body.session_id, 5);
    const receipts = [published.receipt, early, await receiptFor(token), await receiptFor(bobs)];
    const scoring = graderScoring(definition);
    const { commitment } = ledger.rules;
    const problems = async (results: Awaited<ReturnType<typeof closeSeason>>, kept: readonly string[] = []) =>
      (await verifySeason(results, definition, scoring, { commitment, receipts: kept })).join(' ');

    const forged = new DatabaseSync(path);
    t.after(() => forged.close());
    const results = await closeSeason(ledger, definition, scoring);
    assert.equal(await problems(results, receipts), '');
    const [ada, bob] = results.submissions;
    for (const rules of [{ name: 'autumn' }, { minutes: 11 }, { created_at: 1 }]) {
      const edited = { ...results, season: { ...results.season, ...rules } };
      assert.match(await problems(edited), /The secret and the rules are not those of the commitment/);
    }
    const named = (...names: string[]) => ({
      ...results,
      submissions: results.submissions.map((submission, i) => ({ ...submission, name: names[i]! })),
    });
    assert.match(await problems(named('Bob', 'Ada')), /Bob: its receipt is not that of the rules, the names/);
    assert.match(await problems(named('Ada', 'Ada')), /The names Ada and Ada are, or look, the same/);
    const dropped = { ...results, submissions: [ada!] };
    assert.equal(await problems(dropped), '');
    for (const receipt of [published.receipt, receipts[3]!]) {
      assert.match(await problems(dropped, [receipt]), /There is no submission 2, which has a receipt/);
    }
    const turned = { ...results, submissions: [{ ...ada!, order: ada!.order.toReversed() }, bob!] };
    assert.match(await problems(turned), /Ada: its receipt is not that/);
    assert.match(await problems(results, ['hello']), /Expected a receipt/);

    // In the book itself: one entrant's actions over another's, first as they are, then with all digests anew.
    const own = `SELECT key FROM episode WHERE session = '${session}'`;
    forged.exec(
      `UPDATE action SET text = '{"amount":9,"note":"","mode":"plain","weight":1}' WHERE episode = (${own})`,
    );
    const copied = await closeSeason(ledger, definition, scoring);
    assert.match(await problems(copied), /Bob: its receipt is not that/);
    let { admission: digest } = forged.prepare('SELECT admission FROM submission WHERE number = 2').get() as {
      admission: string;
    };
    const texts = forged.prepare(`SELECT text FROM action WHERE episode = (${own}) ORDER BY step`).all();
    for (const { text } of texts as { text: string }[]) digest = actionDigest(digest, 'short', 0, text);
    forged.prepare('UPDATE submission SET digest = ? WHERE number = 2').run(digest);
    const signed = await closeSeason(ledger, definition, scoring);
    assert.equal(await problems(signed), '');
    assert.match(await problems(signed, receipts), /Submission 2 does not have what its receipt says/);
  });

  it('takes no name that hides something, or that can be taken for another', (t) => {
    const { ledger } = season(t);
    for (const name of [
      '',
      'a\nb',
      'a\u001b[2Jb',
      'a\u009bb',
      'A\u200bda',
      'a\u202eb',
      'Аda',
      'a  b',
      'ａｄａ',
      '𝐀da',
      'a\u00a0b',
    ]) {
      assert.throws(() => ledger.admit(name), { code: 'INVALID_NAME' }, JSON.stringify(name));
      assert.throws(() => SeasonLedger.create(newFile(), { ...RULES, name }), { code: 'INVALID_NAME' });
    }
    for (const name of ['Ada', 'ada', 'Äda', 'A.d.a', 'АDА'.replace('D', 'ԁ')]) {
      assert.throws(() => ledger.admit(name), { code: 'SUBMISSION_TAKEN' }, name);
    }
    for (const name of ['Bob', 'Ада', '深度學習', 'Team 7 (v2)', '🚀']) ledger.admit(name);
    assert.throws(() => ledger.admit('B0b'), { code: 'SUBMISSION_TAKEN' });
    assert.throws(() => ledger.admit('Воb'), { code: 'INVALID_NAME' });
  });

  it('of the first format, whose commitment is over the secret alone, is refused with a sentence', () => {
    const path = newFile();
    const former = new DatabaseSync(path);
    former.exec(`CREATE TABLE season (
        one INTEGER PRIMARY KEY CHECK (one = 1), rules TEXT NOT NULL, secret TEXT NOT NULL, closed_at INTEGER
      ) STRICT;
      CREATE TABLE submission (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, token TEXT NOT NULL UNIQUE, admitted_at INTEGER NOT NULL
      ) STRICT;
      INSERT INTO season VALUES (1, '{}', 'secret', NULL)`);
    former.close();
    const message = /begun with a format that commits to no rules\. End it with the version/;
    for (let i = 0; i < 2; i++)
      assert.throws(() => SeasonLedger.open(path), { code: 'STORE_ERROR', message });
  });

  it('goes on after a kill: what was answered is kept, and what was dealt but not answered is dealt again', async (t) => {
    const { path, ledger, token, ask, step, server } = season(t);
    const { body } = await ask('/reset', { submission: token });
    const before = await step(body.session_id, 1);
    // A process that is killed between dealing and answering.
    assert.equal(ledger.deal(token, 'short').episode, 1);
    const after = SeasonLedger.open(path);
    t.after(() => after.close());
    const { ask: askAfter, step: stepAfter } = serveSeason(after);
    const next = await stepAfter(body.session_id, 2);
    assert.equal(next.body.observation.total, before.body.observation.total + 2);
    assert.equal(after.deal(token, 'short').episode, 1);
    const { body: state } = await askAfter(`/state?session_id=${body.session_id}`);
    assert.deepEqual([state.episode, state.step_count], [0, 2]);
    await server.close();
  });

  it('is served by one process at a time', (t) => {
    const { path, ledger } = season(t);
    ledger.hold(path);
    const second = SeasonLedger.open(path);
    t.after(() => second.close());
    assert.throws(() => second.hold(path), { code: 'STORE_ERROR', message: /is being served/ });
    assert.throws(() => SeasonLedger.create(path, RULES), {
      code: 'STORE_ERROR',
      message: /There is a file/,
    });
    assert.throws(() => SeasonLedger.open(`${path}-none`), {
      code: 'STORE_ERROR',
      message: /There is no file/,
    });
  });

  it('is not opened in a file that was cut, or that holds something else, which stays as it is', () => {
    const path = newFile();
    SeasonLedger.create(path, RULES).close();
    truncateSync(path, 0);
    assert.throws(() => SeasonLedger.open(path), { code: 'STORE_ERROR', message: /is empty: it was cut/ });
    const other = newFile();
    const database = new DatabaseSync(other);
    database.exec('CREATE TABLE letter (text)');
    database.close();
    const before = readFileSync(other);
    assert.throws(() => SeasonLedger.open(other), {
      code: 'STORE_ERROR',
      message: /there is no season in it/,
    });
    assert.deepEqual(readFileSync(other), before);
    writeFileSync(other, 'a letter to Ada'.repeat(100));
    assert.throws(() => SeasonLedger.open(other), { message: /the file is damaged, or no SQLite file/ });
  });

  it('is served on the version that it was created on only', (t) => {
    const { ledger } = season(t);
    const newer = { ...definition, version: '2' };
    assert.throws(() => seasonEnvironment(newer, ledger), { code: 'FOREIGN_SEASON' });
  });
});

describe('a ranked session withstands', () => {
  it('looking for the seed or more than the observation in any answer', async (t) => {
    const { token, ask, step } = season(t);
    const reset = await ask('/reset', { submission: token });
    const { session_id } = reset.body;
    const stepped = await step(session_id, 1);
    const state = await ask(`/state?session_id=${session_id}`);
    assert.deepEqual([reset.body.metadata, stepped.body.metadata], [null, null]);
    assert.deepEqual(Object.keys(state.body).sort(), [
      'done',
      'episode',
      'episode_id',
      'step_count',
      'task_id',
    ]);
    for (const { body } of [reset, stepped, state])
      assert.doesNotMatch(JSON.stringify(body), /seed|target|\d{15}/);
  });

  it('the grader, policies, the oracle, episode files and splits: none is there', async (t) => {
    const { token, ask } = season(t);
    const { body } = await ask('/reset', { submission: token });
    const { session_id } = body;
    for (const [path, sent] of [
      ['/grader', { session_id }],
      ['/grader', { session_id, episode_log: [{ amount: 1 }] }],
      ['/policies/oracle/step', { session_id }],
      ['/policies'],
      [`/episodes/${session_id}`],
      ['/episodes', { format: 'openenv-episode/1', reset: {}, actions: [] }],
      ['/counter/task', { split: 'train', index: 0 }],
    ] as const) {
      const { status } = await ask(path, sent);
      assert.ok([404, 501].includes(status), `${path}: ${status}`);
    }
    const listed = await ask('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' });
    const names = listed.body.result.tools.map(({ name }: { name: string }) => name);
    assert.deepEqual(names.sort(), ['get_state', 'list_tasks', 'start_episode', 'take_action']);
  });

  it('a seed of one’s own, options that it has not, an unknown token and an unknown task: none costs an episode', async (t) => {
    const { token, ask } = season(t);
    assert.equal((await ask('/reset', { submission: token, seed: 5 })).status, 422);
    assert.equal((await ask('/reset', {})).status, 422);
    assert.equal((await ask('/reset', { submission: 'guess' })).body.code, 'UNKNOWN_SUBMISSION');
    assert.equal((await ask('/reset', { submission: token, task_id: 'long' })).body.code, 'UNKNOWN_TASK');
    assert.equal((await ask('/season/progress', { submission: 'guess' })).body.code, 'UNKNOWN_SUBMISSION');
    for (const ignored of [
      ...['profile', 'shift', 'rate_scale', 'traffic', 'target', 'episode', 'split', 'index', 'ids'],
    ]) {
      const { status, body } = await ask('/reset', { submission: token, [ignored]: 1 });
      assert.deepEqual([status, JSON.stringify(body).includes(ignored)], [422, true]);
    }
    const tool = { name: 'start_episode', arguments: { submission: token, shift: 'night' } };
    const called = await ask('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: tool });
    assert.match(JSON.stringify(called.body), /shift/);
    const { tasks } = (await ask('/season/progress', { submission: token })).body;
    assert.equal(tasks[0].opened, 0);
  });

  it('parallel sessions: each gets a seed of its own', async (t) => {
    const { ledger, token, ask } = season(t);
    const resets = await Promise.all(Array.from({ length: 20 }, () => ask('/reset', { submission: token })));
    const states = await Promise.all(resets.map(({ body }) => ask(`/state?session_id=${body.session_id}`)));
    const episodes = states.map(({ body }) => body.episode as number);
    assert.deepEqual(
      [...episodes].sort((a, b) => a - b),
      Array.from({ length: 20 }, (_, i) => i),
    );
    assert.equal((await ask('/reset', { submission: token })).body.code, 'NO_EPISODES_LEFT');
    const seeds = [1, 2].flatMap((submission) =>
      episodes.map((episode) => ledger.seedOf({ submission, task_id: 'short', episode })),
    );
    assert.equal(new Set(seeds).size, 40);
  });

  it('leaving bad episodes: they count, and a reset deals the next seed, never one again', async (t) => {
    const { ledger, token, ask, step } = season(t);
    const { body } = await ask('/reset', { submission: token });
    await step(body.session_id, 1);
    await ask('/reset', { session_id: body.session_id, submission: token });
    const { body: state } = await ask(`/state?session_id=${body.session_id}`);
    assert.equal(state.episode, 1);
    assert.equal((await ledger.store().take(body.session_id))?.reset.episode, 1);
    await ledger.store().remove(body.session_id);
    const { submissions } = await closeSeason(ledger, definition, graderScoring(definition));
    const [left] = submissions[0]!.episodes;
    assert.deepEqual([left!.actions.length, left!.done], [1, false]);
    assert.ok(left!.score < 0.95);
  });

  it('vector stepping and closing a session: neither plays a seed twice', async (t) => {
    const { ledger, token } = season(t);
    const { url } = await startServer(t, seasonEnvironment(definition, ledger, { resetMs: 0 }), {
      store: ledger.store(),
    });
    const socket = new WebSocket(`${url.replace('http', 'ws')}/ws`);
    t.after(() => socket.terminate());
    await new Promise((resolve) => socket.once('open', resolve));
    const say = (type: string, data?: object) =>
      new Promise<{ type: string; data: Record<string, unknown> }>((resolve) => {
        socket.once('message', (text) => resolve(JSON.parse(String(text))));
        socket.send(JSON.stringify({ type, ...(data && { data }) }));
      });
    const refused = await say('vector_reset', { count: 2, options: { submission: token } });
    assert.equal(refused.type, 'error');
    assert.equal((await say('reset', { submission: token })).type, 'observation');
    const { data } = await say('state');
    assert.equal(data.episode, 0);
    socket.send(JSON.stringify({ type: 'close' }));
    await new Promise((resolve) => socket.once('close', resolve));
    assert.equal(ledger.deal(token, 'short').episode, 1);
  });

  it('thinking longer than allowed', async (t) => {
    let now = 0;
    const { token, ask, step } = season(t, { now: () => now });
    const { body } = await ask('/reset', { submission: token });
    now = 10 * 60_000;
    assert.equal((await step(body.session_id, 1)).status, 200);
    now++;
    assert.equal((await step(body.session_id, 1)).body.code, 'EPISODE_EXPIRED');
    assert.equal((await step(body.session_id, 1)).body.code, 'EPISODE_EXPIRED');
    const next = await ask('/reset', { session_id: body.session_id, submission: token });
    assert.equal(next.status, 200);
  });

  it('timing resets, which are answered at multiples of one time', async (t) => {
    let now = 0;
    const sleeps: number[] = [];
    const clock = { now: () => now, sleep: async (ms: number) => sleeps.push(ms) };
    const slow = {
      ...definition,
      create() {
        const { reset, ...instance } = definition.create();
        const resetSlowly: typeof reset = (options) => {
          now += 70;
          return reset(options);
        };
        return { ...instance, reset: resetSlowly };
      },
    };
    const { ledger } = season(t);
    const instance = seasonEnvironment(slow, ledger, { resetMs: 40, clock }).create();
    await instance.reset({ task_id: 'short', submission: 1, episode: 0 });
    assert.deepEqual(sleeps, [10]);
  });

  it('guessing seeds from other seeds: only the secret gives them', () => {
    const episode = { submission: 1, task_id: 'short', episode: 0 };
    assert.notEqual(seedOf('a', episode), seedOf('b', episode));
    const seeds = Array.from({ length: 1000 }, (_, i) => seedOf('a', { ...episode, episode: i }));
    assert.equal(new Set(seeds).size, 1000);
    assert.ok(seeds.every((seed) => Number.isSafeInteger(seed) && seed >= 2 ** 52));
  });
});
