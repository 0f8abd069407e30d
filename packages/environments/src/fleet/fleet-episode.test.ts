import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RandomStream, TICKS_PER_S } from '@servegym/simulator';
import { drawFleetRequests, startHour } from './draw-requests.ts';
import { FleetEpisode } from './fleet-episode.ts';
import { NO_REQUEST, requestPrices, traceFleetRequests } from './fleet-requests.ts';
import { FLEET_TASKS, type FleetTask } from './fleet-task.ts';
import { FLEET_TASK_IDS, type FleetAction, fleetActionSchema, fleetObservationSchema } from './schema.ts';
import { fleetWindowReport } from './window-ledger.ts';

/** Ten minutes of a task. */
const short = (task: FleetTask): FleetTask => ({
  ...{ ...task, windows: 20, failuresPerHour: 4 },
  second: { profile: 'a100-80gb-llama-3-8b', coldStartSeconds: [30, 60] },
});

function randomAction(draws: RandomStream): FleetAction {
  return fleetActionSchema.parse({
    replicas: draws.integer(0, 10),
    second_replicas: draws.integer(0, 6),
    prefill_replicas: draws.integer(0, 2),
    routing_cache: draws.uniform(),
    routing_prefix: draws.uniform(),
    admission_seconds: draws.uniform() < 0.5 ? 600 : draws.uniform() * 20,
    max_num_batched_tokens: draws.integer(512, 8192),
    max_num_active_seqs: draws.integer(8, 512),
  });
}

for (const id of FLEET_TASK_IDS) {
  test(`${id}: any actions give valid observations, add up, and repeat from a snapshot to the bit`, () => {
    const task = short(FLEET_TASKS[id]);
    for (const seed of [2]) {
      const draws = new RandomStream(seed, 'actions');
      const actions = Array.from({ length: task.windows }, () => randomAction(draws));
      const episode = new FleetEpisode(task, seed);
      const seen: unknown[] = [];
      let at = episode.snapshot();
      let reward = 0;
      for (const [window, action] of actions.entries()) {
        if (window === 12) at = episode.snapshot();
        reward += episode.step(action);
        const observation = episode.observation();
        assert.deepEqual(fleetObservationSchema.parse(observation), observation);
        seen.push(observation);
      }
      const { totals } = episode;
      assert.ok(totals.attained <= totals.completed);
      const { interactive, batch, best_effort } = episode.observation();
      const inFlight = [interactive, batch, best_effort].reduce(
        (sum, each) => sum + each.num_requests_in_flight,
        0,
      );
      assert.equal(totals.requests, totals.completed + totals.refused + inFlight);
      assert.ok(Math.abs(totals.reward - reward) < 1e-9);
      assert.ok(Math.abs(totals.reward - (totals.revenueUsd - totals.gpuUsd) / task.referenceUsd) < 1e-9);
      const last = { ...totals };
      episode.restore(at);
      for (const [i, action] of actions.slice(12).entries()) {
        episode.step(action);
        assert.deepEqual(episode.observation(), seen[12 + i]);
      }
      assert.deepEqual(episode.totals, last);
      assert.deepEqual(new FleetEpisode(task, seed).requests, episode.requests);
    }
  });
}

test('a window reports the requests that the gateway sent to each replica, and what its cache had', () => {
  const episode = new FleetEpisode(FLEET_TASKS.diurnal, 3);
  for (let window = 0; window < 2; window++) {
    episode.step({ ...episode.action, routing_prefix: 0 });
    const { classes, replicas } = fleetWindowReport(episode);
    const arrived = classes.reduce((sum, each) => sum + each.arrived, 0);
    const routed = replicas.map((replica) => replica.routed);
    assert.equal(
      routed.reduce((sum, each) => sum + each, 0),
      arrived,
    );
    assert.ok(Math.min(...routed) > (0.5 * arrived) / replicas.length, `${routed}`);
    const hits = replicas.map((replica) => replica.prefix_cache_hit_rate);
    const { prefix_cache_hit_rate: all } = episode.observation();
    assert.ok(Math.min(...hits) <= all && all <= Math.max(...hits), `${hits} ${all}`);
  }
});

test('a request earns its price when it meets its objectives, and a replica costs its price by the hour', () => {
  const price = { usdPerMillionInput: 100, usdPerMillionOutput: 1000 };
  const task: FleetTask = {
    ...FLEET_TASKS.diurnal,
    windows: 2,
    defaultAction: { ...FLEET_TASKS.diurnal.defaultAction, replicas: 2 },
    referenceUsd: 2,
    objectives: { interactive: { ttftMs: 400, tpotMs: 12 }, batch: { e2eMs: 10 }, best_effort: {} },
    prices: { interactive: price, batch: price, best_effort: price },
  };
  const requests = {
    inputTokens: Int32Array.of(1000, 1000, 1000, 30_000),
    outputTokens: Int32Array.of(100, 100, 50, 2),
    classes: Uint8Array.of(0, 1, 2, 0),
    starts: Int32Array.of(0, 1, 3),
    startTicks: Float64Array.of(TICKS_PER_S, 5 * TICKS_PER_S, 20 * TICKS_PER_S),
    // The best-effort request is the next turn of the first.
    nextTurn: Int32Array.of(2, NO_REQUEST, NO_REQUEST, NO_REQUEST),
    thinkTicks: Float64Array.of(0, 0, 40 * TICKS_PER_S, 0),
    texts: null,
  };
  const episode = new FleetEpisode(task, 1, requests);
  const action = task.defaultAction;
  episode.step(action);
  const [{ gpu }] = episode.profiles;
  const bill = (2 * gpu.count * gpu.usdPerHour * 30) / 3600;
  assert.equal(episode.billUsd, bill);
  const first = 0.1 + 0.1;
  assert.ok(Math.abs(episode.ledger.revenueUsd - first) < 1e-12);
  assert.deepEqual(
    episode.ledger.classes.map(({ arrived, completed, attained }) => [arrived, completed, attained]),
    [
      // The long prompt takes more than 400 ms to its first token.
      [2, 2, 1],
      [1, 1, 0],
      [0, 0, 0],
    ],
  );
  const reward = episode.step(action);
  assert.ok(Math.abs(reward - (0.1 + 0.05 - bill) / 2) < 1e-12);
  assert.equal(episode.totals.requests, 4);
});

test('conversations grow by their answers, and prompts of an application begin alike', () => {
  const task = FLEET_TASKS.agents;
  const { inputTokens, outputTokens, nextTurn, thinkTicks, texts, starts, startTicks } = drawFleetRequests(
    task,
    5,
  );
  assert.ok(texts !== null);
  const textOf = (request: number) => texts.prefixOf(request, inputTokens[request], outputTokens[request]);
  const idsOf = (request: number) => Array.from(textOf(request)?.ids ?? []);
  const endsOf = (request: number) => Array.from(textOf(request)?.ends ?? []);
  let turns = 0;
  for (let i = 0; i < nextTurn.length; i++) {
    const next = nextTurn[i];
    const ends = endsOf(i);
    assert.ok(ends.every((end, at) => end % 16 === 0 && (at === 0 || end > ends[at - 1])));
    if (next === NO_REQUEST) {
      assert.ok(ends.length === 0 || ends[ends.length - 1] <= inputTokens[i]);
      continue;
    }
    turns++;
    const whole = inputTokens[i] + outputTokens[i];
    assert.ok(inputTokens[next] > whole);
    assert.ok(thinkTicks[next] >= TICKS_PER_S);
    assert.deepEqual(idsOf(next).slice(0, idsOf(i).length), idsOf(i));
    assert.equal(ends[ends.length - 1], whole - (whole % 16));
  }
  assert.ok(turns > 1000);
  for (let i = 1; i < starts.length; i++) assert.ok(startTicks[i] >= startTicks[i - 1]);
  const systems = new Set(Array.from(starts, (request) => idsOf(request)[0]));
  // Three applications of agents and two of retrieval; batch work shares nothing.
  assert.equal(systems.size, 6);
});

test('the rate follows the hour of the day, and surges come as often as the task says', () => {
  const task: FleetTask = {
    ...FLEET_TASKS.diurnal,
    windows: 2880,
    streams: [FLEET_TASKS.diurnal.streams[1]],
  };
  const stream = { ...task.streams[0], rate: { perSecond: 2, peakToTrough: 4, peakHour: 6 } };
  const perHour = (requests: ReturnType<typeof drawFleetRequests>) => {
    const counts = new Float64Array(24);
    for (const tick of requests.startTicks) counts[Math.floor(tick / TICKS_PER_S / 3600)]++;
    return counts;
  };
  const daily = perHour(drawFleetRequests({ ...task, streams: [stream] }, 3));
  assert.equal(startHour(task, 3), 0);
  const total = daily.reduce((sum, count) => sum + count, 0);
  assert.ok(Math.abs(total / (2 * 86_400) - 1) < 0.02);
  assert.ok(Math.abs(daily[5] / daily[17] / 4 - 1) < 0.15);
  const surges = [{ everySeconds: 3600, factor: [3, 3], seconds: [360, 360], rampSeconds: 1 }] as const;
  const surging = drawFleetRequests(
    { ...task, streams: [{ ...stream, rate: { perSecond: 2, peakToTrough: 1, surges } }] },
    3,
  );
  // A tenth of the time at three times the rate: a fifth more requests.
  assert.ok(Math.abs(surging.starts.length / (2 * 86_400) / 1.2 - 1) < 0.08);
});

test('a trace keeps its conversations and shared prompts', () => {
  const requests = traceFleetRequests({
    source: 'test',
    arrivalMs: Float64Array.of(0, 2000, 9000, 9500),
    inputTokens: Int32Array.of(130, 600, 300, 300),
    outputTokens: Int32Array.of(20, 20, 20, 20),
    prefixBlocks: {
      blockTokens: 64,
      ids: Float64Array.of(1, 2, 7, 1, 2, 3, 1, 2, 4),
      offsets: Int32Array.of(0, 2, 3, 6, 9),
    },
    // Two requests follow the first answer: the second of them arrives as recorded.
    followUps: { previous: Int32Array.of(-1, -1, 0, 0), thinkMs: Float64Array.of(0, 0, 4000, 5000) },
  });
  assert.deepEqual([...requests.starts], [0, 1, 3]);
  assert.deepEqual([...requests.startTicks], [0, 2 * TICKS_PER_S, 9.5 * TICKS_PER_S]);
  assert.equal(requests.nextTurn[0], 2);
  assert.equal(requests.thinkTicks[2], 4 * TICKS_PER_S);
  const task = { ...FLEET_TASKS.diurnal, windows: 1 };
  const episode = new FleetEpisode(task, 1, requests);
  while (!episode.done) episode.step({ ...task.defaultAction, replicas: 1 });
  assert.equal(episode.totals.completed, 4);
  assert.equal(episode.fleet.counters().cachedTokens, 2 * 128);
});

test('prefill apart from decode pays where prompts are long and the objective between tokens is tight', () => {
  const { agents } = FLEET_TASKS;
  const lengths = {
    prompt: { median: 16_000, sigma: 0.5, min: 1000, max: 30_000 },
    output: { median: 200, sigma: 0.5, min: 16, max: 1000 },
  };
  const rate = { perSecond: 2, peakToTrough: 1 };
  const documents: FleetTask = {
    ...{ ...agents, id: 'documents', windows: 20 },
    objectives: { ...agents.objectives, interactive: { ttftMs: 5000, tpotMs: 12 } },
    streams: [{ name: 'documents', class: 'interactive', rate, lengths }],
  };
  const requests = drawFleetRequests(documents, 1);
  const attained = (settings: Partial<FleetAction>) => {
    const episode = new FleetEpisode(documents, 1, requests);
    while (!episode.done) episode.step({ ...agents.defaultAction, replicas: 6, ...settings });
    return episode.totals.attained / episode.totals.completed;
  };
  const together = [512, 2048, 8192].map((budget) => attained({ max_num_batched_tokens: budget }));
  assert.ok(attained({ prefill_replicas: 2, max_num_batched_tokens: 8192 }) > Math.max(...together) + 0.1);
});

test('what a prompt repeats of the turn before has a price of its own', () => {
  const [prompt, answer] = [1000, 100];
  const requests = {
    ...traceFleetRequests({
      source: 'two turns',
      arrivalMs: Float64Array.of(0, 0),
      inputTokens: Int32Array.of(prompt, prompt + answer + 50),
      outputTokens: Int32Array.of(answer, 10),
    }),
    nextTurn: Int32Array.of(1, NO_REQUEST),
  };
  const { interactive } = FLEET_TASKS.coding_agents.prices;
  const [first, later] = requestPrices(requests, FLEET_TASKS.coding_agents);
  const usd = (tokens: number, each: number) => (tokens * each) / 1e6;
  const {
    usdPerMillionInput: input,
    usdPerMillionRepeated: again,
    usdPerMillionOutput: output,
  } = interactive;
  near(first, usd(prompt, input) + usd(answer, output));
  near(later, usd(50, input) + usd(prompt + answer, again!) + usd(10, output));
});

test('sessions that wait for tools find their KV on the host, and compute it again without', () => {
  const cachedWith = (hostKvGiB: number | undefined) => {
    const episode = new FleetEpisode({ ...FLEET_TASKS.coding_agents, hostKvGiB }, 1);
    let cached = 0;
    while (!episode.done) {
      episode.step({ ...episode.action, replicas: 3, admission_seconds: 0 });
      cached += episode.observation().prefix_cache_hit_rate / episode.task.windows;
    }
    return cached;
  };
  const [none, some] = [cachedWith(undefined), cachedWith(128)];
  assert.ok(some > none + 0.1, `${none} and ${some}`);
});

function near(actual: number, expected: number): void {
  assert.ok(Math.abs(actual / expected - 1) < 1e-9, `${actual} is not ${expected}`);
}

test('the KV of a session is that of its last turn while the next one is waited for, three minutes at most', () => {
  const requests = {
    ...traceFleetRequests({
      source: 'two turns, and a request beside them',
      arrivalMs: Float64Array.of(0, 0, 0),
      inputTokens: Int32Array.of(1000, 1200, 500),
      outputTokens: Int32Array.of(100, 50, 10),
    }),
    starts: Int32Array.of(0, 2),
    startTicks: Float64Array.of(0, 0),
    nextTurn: Int32Array.of(1, NO_REQUEST, NO_REQUEST),
    thinkTicks: Float64Array.of(0, 70 * TICKS_PER_S, 0),
  };
  const task = { ...FLEET_TASKS.agents, windows: 12 };
  const episode = new FleetEpisode(task, 1, requests);
  const kept = (windows: number) =>
    Array.from({ length: windows }, () => {
      episode.step(task.defaultAction);
      return episode.observation().session_kv_tokens;
    });
  // The next turn comes in the third window. Nobody says that the session has ended with it.
  assert.deepEqual(kept(1), [1100]);
  const at = episode.snapshot();
  const later = kept(11);
  assert.deepEqual(later, [1100, ...Array(6).fill(1250), 0, 0, 0, 0]);
  episode.restore(at);
  assert.deepEqual(kept(11), later);
});
