import assert from 'node:assert/strict';
import { describe, it, type TestContext, test } from 'node:test';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { readLimitedJson } from '../protocol/read-json.ts';
import { readClientJson } from './off-loop.ts';
import { Session } from './session.ts';
import { SessionRegistry, type SessionRegistryOptions } from './session-registry.ts';
import type { SessionStore, StoredSession } from './session-store.ts';
import { DurationMeter, nextTurn } from './turns.ts';

const PLAIN = { note: '', mode: 'plain', weight: 1 } as const;

/** A registry, and what is done with its sessions. */
function registry(
  t: TestContext,
  options: Partial<SessionRegistryOptions> = {},
  definition = counterEnvironment,
) {
  // On a busy machine the first reset is long, and those after it would wait for a turn.
  t.mock.getter(DurationMeter.prototype, 'isLong', () => false);
  const sessions = new SessionRegistry(definition, { maxSessions: 3, idleTimeoutMs: null, ...options });
  t.after(() => sessions.shutDown());
  const open = () => {
    const session = sessions.open();
    session.reset({ seed: 0, target: 100 });
    return session;
  };
  const use = (session: ReturnType<typeof open>) => {
    return session.step({ ...PLAIN, amount: 1 });
  };
  const isHere = (each: { id: string }[]) => each.map(({ id }) => sessions.find(id) !== undefined);
  return { sessions, open, use, isHere };
}

describe('sessions that leave memory', () => {
  it('are those used least recently, not those opened first', (t) => {
    const { open, use, isHere } = registry(t);
    const all = [open(), open(), open()];
    use(all[0]);
    use(all[1]);
    all.push(open());
    assert.deepEqual(isHere(all), [true, true, false, true]);
    use(all[0]);
    all.push(open());
    assert.deepEqual(isHere(all), [true, false, false, true, true]);
  });

  it('are not held by a socket, and none leaves when all are held', (t) => {
    const { sessions, open, isHere } = registry(t, { maxSessions: 2 });
    const all = [open(), open()];
    assert.equal(sessions.attach(all[0]), true);
    assert.equal(sessions.attach(all[0]), false);
    all.push(open());
    assert.deepEqual(isHere(all), [true, false, true]);
    sessions.attach(all[2]);
    assert.throws(() => open(), {
      code: 'CAPACITY_REACHED',
      fields: { active_sessions: 2, max_sessions: 2 },
    });
    sessions.detach(all[0]);
    all.push(open());
    assert.deepEqual(isHere(all), [false, false, true, true]);
  });

  it('are not at work on a step', async (t) => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const slow = {
      ...counterEnvironment,
      create() {
        const counter = counterEnvironment.create();
        const step = async (action: Parameters<typeof counter.step>[0]) => {
          await released;
          return counter.step(action);
        };
        return { ...counter, step };
      },
    };
    const { sessions, open, use, isHere } = registry(t, { maxSessions: 2, idleTimeoutMs: 1000 }, slow);
    const all = [open(), open()];
    const late = use(all[0]);
    all[1].reset({ seed: 1, target: 100 });
    all.push(open());
    assert.deepEqual(isHere(all), [true, false, true]);
    await sessions.releaseIdle(performance.now() + 1e9);
    assert.deepEqual(isHere(all), [true, false, false]);
    release();
    await late;
    await sessions.releaseIdle(performance.now() + 1e9);
    assert.deepEqual(isHere(all), [false, false, false]);
  });

  it('are not those that the clock of the machine makes old by a jump', async (t) => {
    const { sessions, open, isHere } = registry(t, { idleTimeoutMs: 1000 });
    const all = [open(), open()];
    for (const jump of [1e12, -1e12]) {
      const now = Date.now() + jump;
      t.mock.method(Date, 'now', () => now);
      await sessions.releaseIdle();
      assert.deepEqual(isHere(all), [true, true]);
    }
  });

  it('have been closed while a socket held them', (t) => {
    const { sessions, open, isHere } = registry(t);
    const all = [open(), open()];
    for (const session of all) sessions.attach(session);
    all[0].closesOnDetach = true;
    assert.deepEqual(isHere(all), [true, true]);
    for (const session of all) sessions.detach(session);
    assert.deepEqual(isHere(all), [false, true]);
  });

  it('have rested for the whole idle time', async (t) => {
    const { sessions, open, isHere } = registry(t, { idleTimeoutMs: 1000 });
    const all = [open(), open(), open()];
    sessions.attach(all[1]);
    const { lastUsedAt } = all[0];
    await sessions.releaseIdle(lastUsedAt + 999);
    assert.deepEqual(isHere(all), [true, true, true]);
    await sessions.releaseIdle(lastUsedAt + 1000.001);
    assert.deepEqual(isHere(all), [false, true, true]);
    await sessions.releaseIdle(lastUsedAt + 1e9);
    assert.deepEqual(isHere(all), [false, true, false]);
  });
});

describe('the sizes of episodes', () => {
  const sized = { ...counterEnvironment, episodeSize: ({ seed }: { seed?: number }) => seed ?? 0 };

  it('evict the session used least recently, and never the one that asks', (t) => {
    const { sessions, isHere } = registry(t, { maxSessions: 9, maxTotalSize: 100 }, sized);
    const open = (seed: number) => {
      const session = sessions.open();
      session.reset({ seed });
      return session;
    };
    const all = [open(40), open(40), open(20)];
    assert.deepEqual(isHere(all), [true, true, true]);
    all[0].reset({ seed: 41 });
    assert.deepEqual(isHere(all), [true, false, true]);
    all.push(open(39));
    assert.deepEqual(isHere(all), [true, false, true, true]);
    assert.throws(() => all[0].reset({ seed: 101 }), { code: 'EPISODE_TOO_LARGE' });
    assert.equal(sessions.capacity.taken.size, 100);
  });

  it('evict nobody in vain', (t) => {
    const { sessions, open, isHere } = registry(t, { maxSessions: 4, maxTotalSize: 100 }, sized);
    const held = sessions.open();
    held.reset({ seed: 60 });
    sessions.attach(held);
    const resting = [open(), open()];
    assert.throws(() => sessions.hold(4, () => 0), { code: 'CAPACITY_REACHED', message: /: 3\/4 sessions/ });
    assert.throws(() => sessions.hold(1, () => 0, { seed: 41 }), {
      code: 'CAPACITY_REACHED',
      message: /: the other episodes in memory have 60 of at most 100 requests, and this would be 41 more/,
    });
    assert.deepEqual([isHere(resting), sessions.size], [[true, true], 3]);
    assert.equal(sessions.capacity.taken.refusals, 2);
  });

  it('are limited one by one, and given back when a session or a reservation ends', async (t) => {
    const { sessions } = registry(t, { maxSessions: 9, maxEpisodeSize: 60, maxTotalSize: 100 }, sized);
    const session = sessions.open();
    assert.throws(() => session.reset({ seed: 61 }), { code: 'EPISODE_TOO_LARGE' });
    session.reset({ seed: 60 });
    sessions.attach(session);
    const hold = (slots: number, seed: number) => sessions.hold(slots, (lease) => lease, { seed });
    assert.throws(() => hold(3, 40), { code: 'EPISODE_TOO_LARGE' });
    assert.throws(() => hold(2, 30), { code: 'CAPACITY_REACHED' });
    const lease = hold(2, 20);
    assert.deepEqual([sessions.size, sessions.capacity.taken.size], [3, 100]);
    lease.release();
    lease.release();
    assert.deepEqual([sessions.size, sessions.capacity.taken.size], [1, 60]);
    await sessions.release(session.id);
    hold(2, 50).release();
    assert.throws(
      () => sessions.hold(2, () => assert.fail('no environment'), { seed: 50 }),
      /no environment/,
    );
    assert.deepEqual([sessions.size, sessions.capacity.taken.size], [0, 0]);
  });

  it('are given back when a kept session cannot be replayed, whose environment is closed', async (t) => {
    const closed: number[] = [];
    const failing = {
      ...sized,
      create: () => ({
        ...counterEnvironment.create(),
        reset: () => assert.fail('the trace has changed'),
        close: () => void closed.push(1),
      }),
    };
    const { store } = storeOf({ reset: { seed: 40 } });
    const { sessions } = registry(t, { store, maxTotalSize: 100 }, failing);
    for (let tries = 0; tries < 9; tries++) {
      await assert.rejects(sessions.resume('kept'), { code: 'REPLAY_FAILED', message: /trace has changed/ });
    }
    assert.deepEqual([sessions.size, sessions.capacity.taken.size, closed.length], [0, 0, 9]);
  });

  it('do not count once a session has left whose reset was still waiting', async (t) => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const slow = {
      ...sized,
      create() {
        const counter = counterEnvironment.create();
        return {
          ...counter,
          step: (action: Parameters<typeof counter.step>[0]) => released.then(() => counter.step(action)),
        };
      },
    };
    const { sessions } = registry(t, { maxTotalSize: 100 }, slow);
    const session = sessions.open();
    await session.reset({ seed: 10 });
    const step = session.step({ ...PLAIN, amount: 1 });
    const waiting = session.reset({ seed: 90 });
    const left = sessions.release(session.id);
    release();
    await Promise.all([step, waiting, left]);
    assert.deepEqual([sessions.size, sessions.capacity.taken.size], [0, 0]);
  });
});

describe('a draining registry', () => {
  it('opens no more sessions', (t) => {
    const { sessions, open } = registry(t);
    open();
    sessions.drain();
    assert.throws(() => open(), { code: 'DRAINING' });
    assert.equal(sessions.size, 1);
  });
});

/** A store that keeps one session, `kept`, with three steps; each is taken as often as it is asked for. */
function storeOf(changes: Partial<StoredSession> = {}) {
  const taken: string[] = [];
  const removed: string[] = [];
  const done = Promise.resolve();
  const journal = { reset: () => done, step: () => done, isOwned: async () => true };
  const stored: StoredSession = {
    ...{ environment: counterEnvironment, client: '', episodeId: 'e', journal },
    ...{ reset: { seed: 2, target: 100 }, actions: [1, 2, 3].map((amount) => ({ ...PLAIN, amount })) },
    ...changes,
  };
  const store: SessionStore = {
    open: () => journal,
    take: async (id) => {
      taken.push(id);
      return id === 'kept' ? stored : undefined;
    },
    remove: async (id) => void removed.push(id),
    close: async () => {},
  };
  return { store, taken, removed };
}

describe('a session that is kept', () => {
  it('is rebuilt once, however many ask for it at the same time, and found in memory afterwards', async (t) => {
    const { store, taken } = storeOf();
    const { sessions } = registry(t, { store });
    const [one, two] = await Promise.all([sessions.resume('kept'), sessions.resume('kept')]);
    assert.equal(one, two);
    assert.deepEqual([one!.stepCount, one!.record!.actions.length], [3, 3]);
    assert.equal(await sessions.resume('kept'), one);
    assert.deepEqual([taken, sessions.size], [['kept'], 1]);
    assert.equal(await sessions.resume('unknown'), undefined);
  });

  it('is not replayed when it is damaged, or was played on another environment or version', async (t) => {
    const refused: readonly [Partial<StoredSession>, string][] = [
      [{ damage: 'a step is missing.' }, 'SESSION_DAMAGED'],
      [{ environment: { id: 'chess', version: '1' } }, 'REPLAY_FAILED'],
      [{ environment: { id: 'counter', version: '0' } }, 'REPLAY_FAILED'],
    ];
    for (const [changes, code] of refused) {
      const { sessions } = registry(t, { store: storeOf(changes).store });
      await assert.rejects(sessions.resume('kept'), { code }, JSON.stringify(changes));
      assert.equal(sessions.size, 0);
    }
  });

  it('can be restarted though it was damaged or played on another version, but on no other environment', async (t) => {
    for (const changes of [{ damage: 'x' }, { environment: { id: 'counter', version: '0' } }]) {
      const { sessions } = registry(t, { store: storeOf(changes).store });
      assert.equal((await sessions.restart('kept'))!.stepCount, 0);
    }
    const foreign = storeOf({ environment: { id: 'chess', version: '1' } });
    await assert.rejects(registry(t, { store: foreign.store }).sessions.restart('kept'), {
      code: 'REPLAY_FAILED',
    });
  });

  it('stays in the store when it leaves memory, and is removed when it is closed', async (t) => {
    const { store, taken, removed } = storeOf();
    const { sessions } = registry(t, { store });
    await sessions.resume('kept');
    assert.equal(await sessions.release('kept'), true);
    assert.deepEqual([await sessions.release('kept'), removed], [false, []]);
    await sessions.resume('kept');
    await sessions.close('kept');
    assert.deepEqual([taken.length, removed], [2, ['kept']]);
  });
});

/** An environment whose steps end when they are told to, or when it is closed. */
function slowEnvironment() {
  const told: string[] = [];
  const { promise: over, resolve: finish } = Promise.withResolvers<void>();
  const result = { observation: {}, reward: 0, done: false };
  const environment = {
    reset: () => result,
    step: () =>
      over.then(() => {
        told.push('stepped');
        return result;
      }),
    state: () => ({}),
    close() {
      told.push('closed');
      finish();
    },
  };
  return { environment, told, finish };
}

test('a session closes its environment once the step under way is done', async () => {
  const { environment, told, finish } = slowEnvironment();
  const session = new Session(environment);
  await session.reset({});
  const step = session.step({});
  const closed = session.close();
  finish();
  await Promise.all([step, closed]);
  assert.deepEqual(told, ['stepped', 'closed']);
});

test('a session closes its environment though a step does not come to an end', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { environment, told } = slowEnvironment();
  const session = new Session(environment);
  await session.reset({});
  const step = session.step({});
  const closed = session.close();
  t.mock.timers.tick(2000);
  await Promise.all([step, closed]);
  assert.deepEqual(told, ['closed', 'stepped']);
});

const at = (total: number) => ({ observation: { total }, reward: 1, done: false });

/** Counts its steps. */
function counting() {
  let total = 0;
  return {
    reset() {
      total = 0;
      return at(total);
    },
    step: () => at(++total),
    state: () => ({ total, step_count: 99 }),
  };
}

test('a session forgets the actions of the episode before', async () => {
  const session = new Session(counting());
  session.reset({ episode_id: 'one', seed: 1 });
  session.step('a');
  session.step('b');
  assert.deepEqual(session.record, { reset: { episode_id: 'one', seed: 1 }, actions: ['a', 'b'] });
  assert.deepEqual(session.state(), { episode_id: 'one', step_count: 2, total: 2 });
  session.reset({ seed: 2 });
  assert.deepEqual(session.record, { reset: { seed: 2 }, actions: [] });
  assert.equal(session.stepCount, 0);
  assert.notEqual((await session.state()).episode_id, 'one');
});

test('a session whose action could not be noted plays no more', async () => {
  const lost = new Error('the disk is full');
  const noted: number[] = [];
  const journal = {
    reset: async () => {},
    async step(index: number) {
      if (index === 1) throw lost;
      noted.push(index);
    },
    isOwned: async () => true,
  };
  const session = new Session(counting(), { journal });
  await session.reset({ seed: 1 });
  await session.step('a');
  assert.equal(await session.isOwned(), true);
  await assert.rejects(async () => session.step('b'), lost);
  for (const use of [() => session.step('c'), () => session.reset({}), () => session.state()]) {
    await assert.rejects(async () => use(), lost);
  }
  assert.deepEqual([noted, session.failure, await session.isOwned()], [[0], lost, false]);
});

/** A pace at which each computation is long. */
const LONG = { isLong: true, time: (compute: () => unknown) => compute() } as DurationMeter;

test('clients take turns, however many computations of one wait', async () => {
  const served: string[] = [];
  const wait = (client: string) => nextTurn(client).then(() => void served.push(client));
  await Promise.all(['a', 'a', 'a', 'a', 'b', 'c', 'b'].map(wait));
  assert.equal(served.join(''), 'abcabaa');
});

test('the resets of a client wait behind its own, not behind all those of another', async () => {
  const served: string[] = [];
  const opened = (client: string) => {
    const result = { observation: {}, reward: null, done: false };
    const reset = () => {
      served.push(client);
      return result;
    };
    return new Session({ reset, step: () => result, state: () => ({}) }, { client, resetDuration: LONG });
  };
  await Promise.all(['a', 'a', 'a', 'b'].map((client) => opened(client).reset({})));
  assert.equal(served.join(''), 'abaa');
});

test('long JSON is read on a thread, in a turn of its client, short JSON at once', async () => {
  const served: string[] = [];
  const long = `"${'x'.repeat(40_000)}"`;
  const read = async (text: string, client: string) => {
    const reading = await readClientJson(Buffer.from(text), client);
    served.push(`${client} ${reading.ok}`);
  };
  assert.ok(!(readClientJson(Buffer.from('{}'), 'a') instanceof Promise));
  await Promise.all([read(long, 'a'), read(long, 'a'), read(long, 'a'), read(`${long}}`, 'b')]);
  assert.deepEqual(served, ['a true', 'a true', 'b false', 'a true']);
});

test('what the thread reads is what the loop would read', async () => {
  const padding = `"${'x'.repeat(40_000)}"`;
  const parts = ['{"__proto__":1,"\\u0000":-0,"é":[1.5,null,{}]}', '[1e308,"\\ud800"]', 'NaN', '[[', '"\n"'];
  for (const part of parts) {
    const text = `\ufeff[${padding},${part}]`;
    const reading = await readClientJson(Buffer.from(text));
    assert.deepStrictEqual(reading, readLimitedJson(text.slice(1)));
  }
  const entries = Buffer.from(`[${'0,'.repeat(40_000)}0]`);
  assert.ok((await readClientJson(entries)).ok);
  const few = await readClientJson(Buffer.from(`[${'0,'.repeat(40_000)}0]`), '', 1000);
  assert.ok(!few.ok && few.isOverLimit);
});
