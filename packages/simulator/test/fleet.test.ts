import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Cluster } from '../src/cluster/cluster.ts';
import { Engine } from '../src/engine/engine.ts';
import type { CompletionLog } from '../src/engine/engine-log.ts';
import { TICKS_PER_S } from '../src/engine/ticks.ts';
import { Fleet } from '../src/fleet/fleet.ts';
import type { FleetOptions, FleetRequest, FleetSettings } from '../src/fleet/fleet-options.ts';
import { engineConfig } from '../src/fleet/replica.ts';
import { engineOptionsOf } from '../src/profiles/engine-options.ts';
import { fixtureProfile } from './profile-fixture.ts';

const calm: FleetSettings = {
  replicas: [2],
  prefillReplicas: 0,
  routing: { queue: 1, cache: 1, prefix: 0 },
  admissionSeconds: Number.POSITIVE_INFINITY,
  maxNumBatchedTokens: 2048,
  maxNumSeqs: 64,
};
const pool = { profile: fixtureProfile, coldStartSeconds: [20, 40] as const };

interface Answer {
  readonly id: number;
  readonly firstToken: number;
  readonly lastToken: number;
  /** Ordinal of the replica. */
  readonly replica: number;
}

/** A fleet with its answers and refusals. */
function observed(settings: FleetSettings, options: Partial<FleetOptions> = {}) {
  const answers: Answer[] = [];
  const refusals: { readonly id: number; readonly reason: string }[] = [];
  const fleet = new Fleet(
    settings,
    { pools: [pool], ...options },
    {
      firstTokens: () => {},
      completions: (log, { ordinal }) => answers.push(...answersOf(log, ordinal)),
      refused: (id, _tick, reason) => refusals.push({ id, reason }),
    },
  );
  return { fleet, answers, refusals };
}

function answersOf({ ids, firstTokens, lastTokens, count }: CompletionLog, replica: number): Answer[] {
  return Array.from({ length: count }, (_, i) => ({
    ...{ id: ids[i], firstToken: firstTokens[i], lastToken: lastTokens[i], replica },
  }));
}

const request = (id: number, seconds: number, rest: Partial<FleetRequest> = {}): FleetRequest => ({
  id,
  arrival: Math.round(seconds * TICKS_PER_S),
  input: 200 + (id % 7) * 40,
  output: 40 + (id % 5) * 30,
  priority: 0,
  prefix: null,
  ...rest,
});

const s = (seconds: number) => seconds * TICKS_PER_S;
const byId = (a: Answer, b: Answer) => a.id - b.id;

test('one replica serves as an engine does, to the tick, however often its metrics are looked at', () => {
  const load = fc.array(
    fc.record({
      at: fc.double({ min: 0, max: 30, noNaN: true }),
      input: fc.integer({ min: 1, max: 5000 }),
      output: fc.integer({ min: 1, max: 400 }),
      priority: fc.integer({ min: 0, max: 2 }),
    }),
    { minLength: 1, maxLength: 80 },
  );
  fc.assert(
    fc.property(load, fc.constantFrom(50, 333, 1000), (drawn, metricsIntervalMs) => {
      const requests = drawn
        .toSorted((a, b) => a.at - b.at)
        .map(({ at, ...rest }, id) => request(id, at, rest));
      const settings = { ...calm, replicas: [1] };
      const { fleet, answers } = observed(settings, { metricsIntervalMs });
      const engine = new Engine(engineConfig(pool, settings), {
        ...engineOptionsOf(fixtureProfile, false),
        prefixCaching: true,
      });
      for (const each of requests) {
        fleet.submit(each);
        engine.submit(each);
      }
      fleet.runUntil(s(300));
      engine.runUntil(Number.POSITIVE_INFINITY);
      const expected = answersOf(engine.completions, 0);
      assert.deepEqual(answers.toSorted(byId), expected.toSorted(byId));
    }),
    { numRuns: 40 },
  );
});

test('a prefill and a decode replica serve as a split cluster does', () => {
  const { fleet, answers } = observed({ ...calm, prefillReplicas: 1 });
  const cluster = new Cluster(
    {
      ...{ maxNumSeqs: 64, kvBudgetFraction: 1, speculationDepth: 0, weights: 'FP16', split: true },
      schedulingPolicy: 'priority',
    },
    { profile: fixtureProfile, prefixCaching: true },
  );
  for (let id = 0; id < 200; id++) {
    fleet.submit(request(id, id / 6));
    cluster.submit(request(id, id / 6));
  }
  fleet.runUntil(s(200));
  for (let at = 1; at <= 200; at++) cluster.runUntil(s(at));
  const expected = cluster.engines.flatMap(({ completions }, gpu) => answersOf(completions, gpu));
  assert.equal(answers.length, 200);
  assert.deepEqual(answers.toSorted(byId), expected.toSorted(byId));
});

const change = fc.record({
  replicas: fc.integer({ min: 0, max: 6 }),
  prefillReplicas: fc.integer({ min: 0, max: 3 }),
  queue: fc.integer({ min: 0, max: 1 }),
  prefix: fc.integer({ min: 0, max: 2 }),
  admissionSeconds: fc.constantFrom(0, 1, 5, Number.POSITIVE_INFINITY),
  maxNumBatchedTokens: fc.constantFrom(64, 512, 4096),
  perSecond: fc.integer({ min: 0, max: 25 }),
});

/** Plays changes of 20 s each. Requests come in sessions of growing prompts. */
function play(
  { fleet }: ReturnType<typeof observed>,
  changes: readonly (typeof change extends fc.Arbitrary<infer T> ? T : never)[],
  firstId: number,
): number {
  let id = firstId;
  for (const { replicas, prefillReplicas, queue, prefix, perSecond, ...rest } of changes) {
    fleet.configure({
      ...{ ...calm, ...rest, replicas: [replicas], prefillReplicas },
      routing: { queue, cache: queue, prefix },
    });
    const begin = fleet.now / TICKS_PER_S;
    const count = perSecond === 0 ? 0 : perSecond * 20 + 7;
    for (let i = 0; i < count; i++) {
      const session = id % 9;
      const turns = 1 + (Math.floor(id / 9) % 5);
      const ids = Array.from({ length: turns * 2 }, (_, at) => session * 100 + at);
      fleet.submit(
        request(id++, begin + i / perSecond, {
          ...{ input: turns * 128 + 5, priority: id % 3 },
          prefix: { ids, chunkTokens: 64 },
        }),
      );
    }
    fleet.runUntil(s(begin + 20));
  }
  return id;
}

test('any changes of settings and failures answer or refuse each request once, and bill each second once', () => {
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 6 }), fc.nat(1000), (changes, seed) => {
      const run = observed(calm, { failuresPerHour: 60, maxReplicas: 8, seed });
      const { fleet, answers, refusals } = run;
      const submitted = play(run, changes, 0);
      fleet.configure(calm);
      fleet.runUntil(fleet.now + s(2000));
      const heard = [...answers, ...refusals].map(({ id }) => id).sort((a, b) => a - b);
      assert.deepEqual(
        heard,
        Array.from({ length: submitted }, (_, id) => id),
      );
      const { starting, ready, draining } = fleet.replicaSeconds(0);
      assert.ok(starting + ready + draining <= (8 * fleet.now) / TICKS_PER_S + 1e-6);
      assert.equal(fleet.replicas.length, 2);
    }),
    { numRuns: 25 },
  );
});

test('a fleet that goes back to a snapshot repeats what followed, to the bit', () => {
  fc.assert(
    fc.property(
      fc.array(change, { minLength: 1, maxLength: 3 }),
      fc.array(change, { minLength: 1, maxLength: 3 }),
      (before, after) => {
        const run = observed(calm, { failuresPerHour: 30, seed: 3 });
        const { fleet, answers, refusals } = run;
        const next = play(run, before, 0);
        const snapshot = fleet.snapshot();
        const tell = () => {
          answers.length = 0;
          refusals.length = 0;
          fleet.clearLogs();
          play(run, after, next);
          return structuredClone([
            ...[answers, refusals, fleet.events, fleet.counters(), fleet.replicaSeconds(0)],
            fleet.interTokenLatency().entries(),
          ]);
        };
        const first = tell();
        fleet.restore(snapshot);
        assert.deepEqual(tell(), first);
      },
    ),
    { numRuns: 40 },
  );
});

test('a replica that is asked for is billed at once, serves after its cold start, and drains before it stops', () => {
  const { fleet, answers } = observed({ ...calm, replicas: [0] });
  for (let id = 0; id < 20; id++) fleet.submit(request(id, id / 10));
  fleet.runUntil(s(10));
  assert.equal(fleet.heldCount, 20);
  fleet.configure({ ...calm, replicas: [1] });
  fleet.runUntil(s(60));
  const [requested, ready] = fleet.events;
  assert.deepEqual([requested.kind, requested.at], ['requested', s(10)]);
  const coldStart = (ready.at - requested.at) / TICKS_PER_S;
  assert.equal(ready.kind, 'ready');
  assert.ok(coldStart >= 20 && coldStart <= 41);
  assert.equal(answers.length, 20);
  assert.equal(fleet.replicaSeconds(0).starting, coldStart);

  fleet.submit(request(99, 60, { output: 1000 }));
  fleet.runUntil(s(61));
  fleet.configure({ ...calm, replicas: [0] });
  fleet.submit(request(100, 62));
  fleet.runUntil(s(120));
  assert.deepEqual(
    fleet.events.slice(2).map(({ kind }) => kind),
    ['draining', 'stopped'],
  );
  // What drains gets nothing new, and finishes what it has.
  assert.deepEqual(
    answers.slice(20).map(({ id }) => id),
    [99],
  );
  assert.equal(fleet.heldCount, 1);
  const { starting, ready: served, draining } = fleet.replicaSeconds(0);
  assert.equal(starting + served + draining, (fleet.events[3].at - requested.at) / TICKS_PER_S);
  assert.ok(draining > 10);
});

test('a replica that starts and is not wanted any more is given back at once', () => {
  const { fleet } = observed({ ...calm, replicas: [1] });
  fleet.configure({ ...calm, replicas: [4] });
  fleet.runUntil(s(5));
  fleet.configure({ ...calm, replicas: [1] });
  fleet.runUntil(s(60));
  assert.deepEqual(fleet.replicaSeconds(0), { starting: 15, ready: 60, draining: 0 });
});

test('a start waits for the GPU of a replica that drains', () => {
  const { fleet } = observed({ ...calm, replicas: [1] }, { maxReplicas: 1 });
  fleet.submit(request(0, 0, { output: 2000 }));
  fleet.runUntil(s(2));
  fleet.configure({ ...calm, replicas: [0] });
  fleet.runUntil(s(3));
  fleet.configure({ ...calm, replicas: [1] });
  fleet.runUntil(s(100));
  assert.deepEqual(
    fleet.events.map(({ kind }) => kind),
    ['draining', 'stopped', 'requested', 'ready'],
  );
  assert.equal(fleet.events[1].at, fleet.events[2].at);
});

/** Tokens found in prefix caches when 11 sessions of 10 growing turns are served with a weight of prefixes. */
function cachedTokens(prefix: number, beforeTurn?: (fleet: Fleet, turn: number) => void): number {
  const { fleet } = observed({ ...calm, replicas: [4], routing: { queue: 1, cache: 0, prefix } });
  for (let turn = 0; turn < 10; turn++) {
    beforeTurn?.(fleet, turn);
    for (let session = 0; session < 11; session++) {
      const ids = Array.from({ length: 4 * turn + 4 }, (_, at) => session * 1000 + at);
      fleet.submit(
        request(turn * 11 + session, turn * 30 + session * ((turn % 3) + 1) * 0.3, {
          ...{ input: ids.length * 64 + 9, output: 20, prefix: { ids, chunkTokens: 64 } },
        }),
      );
    }
    fleet.runUntil(s(turn * 30 + 30));
  }
  return fleet.counters().cachedTokens;
}

test('a weight of prefixes keeps sessions where their cache is, and what stops takes its cache with it', () => {
  // Turn t finds the 4 t chunks of the turn before.
  const whole = (11 * 64 * 4 * (9 * 10)) / 2;
  assert.equal(cachedTokens(3), whole);
  assert.ok(cachedTokens(0) < 0.8 * whole);
  const scaled = cachedTokens(3, (fleet, turn) => {
    if (turn === 5) fleet.configure({ ...fleet.settings, replicas: [2] });
  });
  assert.ok(scaled < whole && scaled > 0.5 * whole);
});

test('a request goes where the fewest are in flight, those sent since the last look included', () => {
  const { fleet, answers } = observed({
    ...{ ...calm, replicas: [3] },
    routing: { queue: 0, cache: 0, prefix: 0 },
  });
  // In turns: two long ones on the first replica.
  for (const [id, output] of [2000, 1, 1, 2000].entries()) fleet.submit(request(id, 0, { output }));
  fleet.runUntil(s(5));
  fleet.configure({ ...fleet.settings, routing: { queue: 1, cache: 0, prefix: 0 } });
  for (let id = 4; id < 8; id++) fleet.submit(request(id, 5.5, { output: 200 }));
  fleet.runUntil(s(100));
  assert.deepEqual(
    answers.toSorted(byId).map(({ replica }) => replica),
    [0, 1, 2, 0, 1, 2, 1, 2],
  );
});

test('a replica that replaces another is not taken for it', () => {
  const { fleet, answers } = observed({ ...calm, routing: { queue: 0, cache: 0, prefix: 1 } });
  const prompt = (id: number, at: number, ...ids: number[]) =>
    request(id, at, { input: ids.length * 64 + 1, prefix: { ids, chunkTokens: 64 } });
  // In turns where nothing is known.
  for (const [id, chunk] of [1, 2, 3, 4].entries()) fleet.submit(prompt(id, id, chunk));
  for (const [at, chunk] of [4, 3, 2, 1].entries()) fleet.submit(prompt(4 + at, 10 + at, chunk, 50));
  fleet.runUntil(s(30));
  const replicas = () => answers.toSorted(byId).map(({ replica }) => replica);
  assert.deepEqual(replicas(), [0, 1, 0, 1, 1, 0, 1, 0]);
  for (const wanted of [1, 2]) {
    fleet.configure({ ...fleet.settings, replicas: [wanted] });
    fleet.runUntil(fleet.now + s(60));
  }
  assert.deepEqual(
    fleet.replicas.map(({ ordinal }) => ordinal),
    [0, 2],
  );
  // Chunks 2 and 4 went with the replica that stopped: in turns again.
  for (const [at, chunk] of [2, 4, 1, 3].entries()) fleet.submit(prompt(8 + at, 200 + at, chunk, 60));
  fleet.runUntil(s(300));
  assert.deepEqual(replicas().slice(8), [0, 2, 0, 0]);
});

test('with a weight of the cache a request goes where KV blocks are free', () => {
  const { fleet, answers } = observed({ ...calm, routing: { queue: 0, cache: 1, prefix: 0 } });
  fleet.submit(request(0, 0, { input: 8000, output: 1000 }));
  fleet.submit(request(1, 0, { input: 100, output: 1000 }));
  fleet.runUntil(s(3));
  for (let id = 2; id < 6; id++) fleet.submit(request(id, 3.5));
  fleet.runUntil(s(100));
  const replica = (id: number) => answers.find((answer) => answer.id === id)?.replica;
  assert.notEqual(replica(0), replica(1));
  for (let id = 2; id < 6; id++) assert.equal(replica(id), replica(1));
});

test('a scale-down takes what starts, then the least busy', () => {
  const { fleet } = observed({ ...calm, replicas: [3], routing: { queue: 0, cache: 0, prefix: 0 } });
  for (const [id, output] of [3000, 500, 3000].entries()) fleet.submit(request(id, 0, { output }));
  fleet.runUntil(s(1));
  fleet.configure({ ...fleet.settings, replicas: [4] });
  fleet.runUntil(s(2));
  fleet.configure({ ...fleet.settings, replicas: [3] });
  fleet.runUntil(s(20));
  assert.deepEqual(
    fleet.replicas.map(({ ordinal }) => ordinal),
    [0, 1, 2],
  );
  fleet.configure({ ...fleet.settings, replicas: [2] });
  fleet.runUntil(s(22));
  assert.deepEqual(
    fleet.replicas.map(({ ordinal }) => ordinal),
    [0, 2],
  );
});

test('a replica that changes its role gets nothing before it has finished, and decodes are spread', () => {
  const { fleet, answers } = observed({ ...calm, replicas: [3], routing: { queue: 0, cache: 0, prefix: 0 } });
  fleet.submit(request(0, 0, { output: 1000 }));
  fleet.runUntil(s(1));
  fleet.configure({ ...fleet.settings, prefillReplicas: 1 });
  for (let id = 1; id <= 8; id++) fleet.submit(request(id, id));
  fleet.runUntil(s(10));
  assert.equal(fleet.replicas[0].engine.role, 'mixed');
  assert.ok(answers.every(({ replica }) => replica !== 0));
  fleet.runUntil(s(60));
  assert.equal(fleet.replicas[0].engine.role, 'prefill');
  assert.equal(fleet.events[0].kind, 'role_changed');
  for (let id = 100; id < 110; id++) fleet.submit(request(id, 60, { output: 300 }));
  fleet.runUntil(s(100));
  const decoded = answers.filter(({ id }) => id >= 100).map(({ replica }) => replica);
  assert.deepEqual(
    [1, 2].map((replica) => decoded.filter((each) => each === replica).length),
    [5, 5],
  );
});

test('admission refuses best effort first, then batch, and never what is interactive', () => {
  const { fleet, refusals } = observed({ ...calm, replicas: [1], maxNumSeqs: 4, admissionSeconds: 10 });
  const queue: number[] = [];
  for (let at = 0; at < 60; at++) {
    for (let i = 0; i < 6; i++) fleet.submit(request(at * 6 + i, at + i / 6, { priority: i % 3 }));
    fleet.runUntil(s(at + 1));
    queue.push(fleet.queueSeconds);
  }
  const classes = refusals.map(({ id }) => (id % 6) % 3);
  assert.ok(classes.includes(1));
  assert.ok(!classes.includes(0));
  assert.ok(classes.indexOf(2) < classes.indexOf(1));
  const firstRefusal = Math.floor(refusals[0].id / 6);
  assert.ok(queue[firstRefusal] > 10 && queue.slice(0, firstRefusal).every((seconds) => seconds <= 10));
});

test('a failed replica sends its requests elsewhere and starts again', () => {
  const { fleet, answers } = observed({ ...calm, replicas: [2] }, { failuresPerHour: 60, seed: 1 });
  for (let id = 0; id < 600; id++) fleet.submit(request(id, id / 5));
  fleet.runUntil(s(300));
  const kinds = fleet.events.map(({ kind }) => kind);
  assert.ok(kinds.includes('failed'));
  assert.ok(kinds.indexOf('ready') > kinds.indexOf('failed'));
  assert.equal(answers.length, 600);
});

test('spot capacity is taken back after its notice: it drains first, and what it still holds goes elsewhere', () => {
  const pools = [{ ...pool, reclaim: { perHour: 60, noticeSeconds: 20 } }];
  const { fleet, answers } = observed({ ...calm, replicas: [3] }, { pools, seed: 1 });
  for (let id = 0; id < 600; id++) fleet.submit(request(id, id / 5, { output: id % 50 === 0 ? 4000 : 100 }));
  fleet.runUntil(s(400));
  const { events } = fleet;
  const kindsOf = (slot: number) => events.filter(({ replica }) => replica === slot).map(({ kind }) => kind);
  const taken = events.filter(({ kind }) => kind === 'reclaimed');
  assert.ok(taken.length > 3);
  const lost = events.filter(({ kind }) => kind === 'failed');
  assert.ok(lost.length > 0 && lost.length < taken.length, 'most have nothing left after twenty seconds');
  for (const { replica, at } of lost) {
    const notice = taken.findLast((event) => event.replica === replica && event.at < at)!;
    assert.equal(at - notice.at, s(20));
    assert.ok(kindsOf(replica).includes('stopped'));
  }
  assert.equal(answers.length, 600);
});

test('two pools have profiles and counts of their own', () => {
  const slow = { ...pool, weights: 'INT8' as const };
  const { fleet, answers } = observed({ ...calm, replicas: [1, 2] }, { pools: [pool, slow] });
  for (let id = 0; id < 300; id++) fleet.submit(request(id, id / 10));
  fleet.runUntil(s(100));
  assert.equal(answers.length, 300);
  assert.deepEqual([fleet.replicaSeconds(0).ready, fleet.replicaSeconds(1).ready], [100, 200]);
  const memory = fleet.replicas.map(({ engine }) => engine.kvBlocksTotal);
  assert.ok(memory[1] > memory[0]);
});

test('a setting out of range is refused by name and changes nothing', () => {
  const { fleet } = observed(calm);
  const wrong: [Partial<FleetSettings>, string][] = [
    [{ replicas: [33] }, 'replicas[0]'],
    [{ replicas: [1, 1] }, 'replicas'],
    [{ prefillReplicas: -1 }, 'prefillReplicas'],
    [{ routing: { queue: Number.NaN, cache: 0, prefix: 0 } }, 'routing.queue'],
    [{ admissionSeconds: -1 }, 'admissionSeconds'],
    [{ maxNumBatchedTokens: 32 }, 'maxNumSeqs'],
  ];
  for (const [settings, field] of wrong) {
    assert.throws(() => fleet.configure({ ...calm, ...settings }), { code: 'FLEET_SETTING', field });
  }
  assert.deepEqual(fleet.settings, calm);
  assert.throws(() => observed(calm, { pools: [{ ...pool, coldStartSeconds: [60, 30] }] }), {
    field: 'pools[0].coldStartSeconds[1]',
  });
});

test('a policy routes, admits and leaves prefill on the replicas that decode, and goes back to a snapshot with its state', () => {
  let admitted = 0;
  const policy = () => ({
    admit: ({ priority }: { priority: number }) => priority < 2 || admitted++ % 2 === 0,
    score: (_: unknown, replica: { index: number; role: string }) => (replica.index === 2 ? 1 : 0),
    disaggregate: ({ prompt_tokens: tokens }: { prompt_tokens: number }) => tokens > 300,
    state: () => admitted,
    restore: (state: unknown) => {
      admitted = state as number;
    },
  });
  const { fleet, answers, refusals } = observed({ ...calm, replicas: [3], prefillReplicas: 1 }, { policy });
  const load = (first: number) => {
    for (let id = first; id < first + 63; id++) fleet.submit(request(id, id / 4, { priority: id % 3 }));
    fleet.runUntil(s((first + 63) / 4));
    const told = [answers.splice(0).map(({ id, lastToken }) => [id, lastToken]), refusals.splice(0)];
    return { told, routed: fleet.replicas.map(({ routed }) => routed) };
  };
  const { routed, told } = load(0);
  assert.equal(told[1].length, 10);
  // Prompts of more than 300 tokens go to the replica that prefills, which is the first, the others to the third.
  assert.deepEqual(
    routed.map((count) => count > 0),
    [true, false, true],
  );
  const snapshot = fleet.snapshot();
  fleet.clearLogs();
  const once = load(63);
  fleet.restore(snapshot);
  assert.deepEqual(load(63), once);
  assert.deepEqual(fleet.policyFaults, []);
});
