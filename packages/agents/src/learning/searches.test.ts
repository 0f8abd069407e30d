import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { type FleetAction, FleetEpisode, type FleetObservation, fleet } from '@servegym/environments';
import { type DemandParameters, demandPolicy, loadFleetPolicy } from '../policies/fleet-policies.ts';
import { climbCoordinates } from './coordinate-search.ts';
import { CrossEntropySearch, type SearchPoint } from './cross-entropy-search.ts';
import { traceSeed } from './learning-environment.ts';
import { trainPolicy } from './train-policy.ts';

const schedule = { seed: 1, groupSize: 2, traces: { first: 100, last: 199 } };

function episodes(count: number, environment: number, changes: Partial<typeof schedule> = {}): number[] {
  return Array.from({ length: count }, (_, episode) =>
    traceSeed({ ...schedule, ...changes }, environment, episode),
  );
}

describe('traceSeed', () => {
  it('gives a group the same traces in the same order, and another group others', () => {
    assert.deepEqual(episodes(10, 0), episodes(10, 1));
    assert.notDeepEqual(episodes(10, 1), episodes(10, 2));
    assert.notDeepEqual(episodes(10, 0), episodes(10, 0, { seed: 2 }));
  });

  it('stays within its traces and reaches all of them', () => {
    const drawn = new Set(episodes(2000, 0));
    assert.equal(drawn.size, 100);
    assert.ok([...drawn].every((seed) => seed >= 100 && seed <= 199));
  });
});

const grid = { x: [0, 1, 2, 3, 4], y: [0, 1, 2, 3, 4] };

test('climbs one parameter at a time to a peak, and tells finalists apart on many traces', async () => {
  let played = 0;
  const search = {
    grid,
    traces: { few: 1, many: 4 },
    finalists: 2,
    // The first trace likes x = 4; the mean of four is best at (3, 1).
    play: ({ x, y }: { x: number; y: number }, trace: number) => {
      played++;
      return -((x - 3) ** 2) - (y - 1) ** 2 + (trace === 0 ? 2 * x : (-2 * x) / 3);
    },
  };
  const { settings, meanReturn } = await climbCoordinates(search, () => [{ x: 0, y: 4 }]);
  assert.deepEqual(settings, { x: 3, y: 1 });
  assert.ok(Math.abs(meanReturn) < 1e-12);
  // No pair is played twice on a trace.
  assert.ok(played <= 25 * 4);
});

test('keeps the best end of its starts', async () => {
  // Two peaks with a valley between them.
  const play = ({ x }: { x: number }) => [5, 0, 0, 0, 9][x]!;
  const search = { grid: { x: [0, 4] }, traces: { few: 1, many: 1 }, finalists: 2, play };
  const { meanReturn } = await climbCoordinates(search, () => [{ x: 0 }, { x: 4 }]);
  assert.equal(meanReturn, 9);
});

const options = {
  seed: 1,
  numbers: [
    { mean: 0, deviation: 2 },
    { mean: 0, deviation: 2 },
  ],
  population: 40,
  elite: 8,
  smoothing: 0.3,
};

/** Best at 1.5 and -2. */
const worth = ([x, y]: SearchPoint) => -((x! - 1.5) ** 2) - (y! + 2) ** 2;

function search(generations: number) {
  const found = new CrossEntropySearch(options);
  for (let generation = 0; generation < generations; generation++) {
    const points = found.draw();
    assert.equal(points.length, 40);
    found.learn(points, points.map(worth));
  }
  return found.likeliest();
}

describe('CrossEntropySearch', () => {
  it('comes to the best point', () => {
    const [x, y] = search(15);
    assert.ok(Math.abs(x! - 1.5) < 0.05 && Math.abs(y! + 2) < 0.05, `${x} ${y}`);
  });

  it('is deterministic', () => {
    assert.deepEqual(search(3), search(3));
  });
});

const task = fleet.tasks.shipped.flash_crowds;
const observed = new FleetEpisode({ ...task, windows: 1 }, 1).observation();
/** A server whose replica serves 10,000 prompt tokens a second when half of its time goes to empty iterations. */
const server = {
  ...{ ...observed.server, step_base_ms: 10, tpot_objective_ms: 20, ttft_objective_ms: 500 },
  ...{ step_token_us: 50, step_sequence_us: 0, step_context_ns: 0, kv_cache_tokens: 1e9 },
};
const calm = { ...observed, server, request_generation_tokens_mean: 100, replicas_ready: 16 };

const parameters: DemandParameters = {
  ...{
    tpotShare: 1,
    decay: 0.5,
    surge: 0,
    late: 0,
    spareReplicas: 0,
    reactionSeconds: 1e9,
    spread: 0,
    usualWindows: 20,
    prefillRoom: 0,
    backlog: 0.3,
  },
  ...{ correction: 1e-9, mostCorrection: 0.3, allowedMisses: 1e-9, admissionSeconds: 0.25, prefixWeight: 2 },
  ...{ prefillShare: 3.2, prefillSlack: 1, hold: 0, sessionRoom: 1, sessionTrend: 0, sessionDecay: 0 },
};

/** Settings that a policy asks for, window by window. */
function actionsOf(
  windows: readonly Partial<FleetObservation>[],
  changed: Partial<DemandParameters> = {},
): FleetAction[] {
  const policy = demandPolicy({ ...parameters, ...changed });
  policy.reset();
  let previousAction = task.defaultAction;
  return windows.map((window, i) => {
    const observation = { ...calm, ...window };
    previousAction = policy.act({ observation, previousAction, stepIndex: i + 1 });
    return previousAction;
  });
}

/** Requests a second of so many prompt tokens. */
const window = (arrivals: number, tokens = 4000, waiting = 0): Partial<FleetObservation> => ({
  arrived_prompt_tokens_per_second: arrivals * tokens,
  prefix_cache_hit_rate: 0,
  num_requests_waiting: waiting,
  interactive: { ...calm.interactive, arrivals_per_second: arrivals },
  arrivals_last_seconds: arrivals,
  batch: { ...calm.batch, arrivals_per_second: 0 },
  best_effort: { ...calm.best_effort, arrivals_per_second: 0 },
});

describe('the policy that is learned on fleet', () => {
  const replicas = (windows: readonly Partial<FleetObservation>[], changed?: Partial<DemandParameters>) =>
    actionsOf(windows, changed).map((action) => action.replicas);

  test('gives the requests of a window their mean work over the last minutes, and forgets by its decay', () => {
    // 40,000. Then 4,000 + 0.05 x (8,000 - 4,000) = 4,200 tokens a request: 42,000, and half of it for two windows.
    assert.deepEqual(replicas([window(10), window(10, 8000), window(0), window(0)]), [4, 5, 3, 2]);
  });

  test('meets a sudden rise with more than it asks for, once', () => {
    // 100,000 + 0.6 x (100,000 - 1.25 x 40,000) = 130,000; 48,000 is no sudden rise from 40,000.
    assert.deepEqual(replicas([window(10), window(25), window(25)], { surge: 0.6 }), [4, 13, 10]);
    assert.deepEqual(replicas([window(10), window(12)], { surge: 0.6 }), [4, 5]);
  });

  test('adds the work that waits, divided over a window, and the spare replicas before it rounds up', () => {
    // 0.3 x 300 requests x 4,000 tokens / 30 s = 12,000.
    assert.deepEqual(replicas([window(10, 4000, 300)]), [6]);
    assert.deepEqual(replicas([window(9)], { spareReplicas: 0.4 }), [4]);
    assert.deepEqual(replicas([window(9)], { spareReplicas: 0.6 }), [5]);
  });

  test('sees the arrivals of the last seconds, the spread of the demand and the prefill of a prompt', () => {
    const late = { ...window(10), arrivals_last_seconds: 20 };
    // 4 replicas of demand, and half of the 4 more that the last seconds bring.
    assert.deepEqual(replicas([late], { late: 0.5 }), [6]);
    // Replicas that start too slowly: a mean of 6, and twice the deviation of 2; of the last window alone, its demand of 8.
    const slow = { reactionSeconds: 1e-9, spread: 2 };
    assert.deepEqual(replicas([window(10), window(20)], slow), [4, 10]);
    assert.deepEqual(replicas([window(10), window(20)], { ...slow, usualWindows: 1 }), [4, 8]);
    // The prefill of 4,000 tokens takes 0.2 s of 0.5 s.
    assert.deepEqual(replicas([window(10)], { prefillRoom: 1 }), [6]);
  });

  test('corrects the demand by what misses while there are replicas enough', () => {
    const missing = { ...window(10), interactive: { ...window(10).interactive!, slo_attainment: 0.5 } };
    assert.deepEqual(replicas([missing, missing, missing], { correction: 0.5 }), [5, 6, 6]);
    assert.deepEqual(replicas([{ ...missing, replicas_ready: 3 }], { correction: 0.5 }), [4]);
  });

  test('serves the share of all requests that is asked for, and no more', () => {
    const share = (slo_attainment: number, classes: Partial<FleetObservation> = {}) => ({
      ...{ ...window(10), ...classes },
      interactive: { ...window(10).interactive!, slo_attainment },
    });
    const asked = { correction: 1, sloAttainment: 0.75 };
    // 4 replicas; then a quarter of the requests more or less than asked for, whether the replicas are ready or not.
    assert.deepEqual(replicas([share(0.5)], asked), [5]);
    assert.deepEqual(replicas([{ ...share(0.5), replicas_ready: 3 }], asked), [5]);
    assert.deepEqual(replicas([share(1)], asked), [3]);
    // Nothing in time at all: as much more as it may add.
    assert.deepEqual(replicas([share(0)], asked), [6]);
    // As many batch requests in time as interactive ones late: just what is asked for.
    const batch = { ...calm.batch, arrivals_per_second: 10, slo_attainment: 1 };
    assert.deepEqual(replicas([share(0.5, { batch })], { ...asked, mostCorrection: 0.01 }), [4]);
  });

  test('forgets a burst of misses in the time in which it may miss six times as many', () => {
    const share = (slo_attainment: number) => ({
      ...window(9.9),
      interactive: { ...window(9.9).interactive!, slo_attainment },
    });
    const asked = { correction: 1, mostCorrection: 1, sloAttainment: 0.95 };
    // Just under 4 replicas. Nothing in time: 6 x 5 % more, and 5 % less in each of the windows without a miss.
    const burst = [share(0), ...Array.from({ length: 7 }, () => share(1))];
    assert.deepEqual(replicas(burst, asked), [6, 5, 5, 5, 5, 5, 4, 4]);
    // All in time is asked for: more is provided, and nothing is taken back.
    assert.deepEqual(replicas([share(0), share(1)], { correction: 10, sloAttainment: 1 }), [6, 6]);
  });

  test('keeps replicas that it would soon start again', () => {
    assert.deepEqual(replicas([window(12.5), window(10)], { hold: 0.5 }), [5, 5]);
    assert.deepEqual(replicas([window(12.5), window(8)], { hold: 0.5 }), [5, 4]);
  });

  test('gives a replica what its KV pool holds', () => {
    // 41,000 tokens: 10 requests of 4,100, each for 100 x 20 ms and its prefill of 0.2 s: 4.5 a second instead of 2.5.
    const small = { ...window(10), server: { ...server, kv_cache_tokens: 20_500 } };
    assert.deepEqual(replicas([small]), [5]);
  });

  test('has room for what sessions keep while they wait, on the GPU and on the host, and for what they will', () => {
    const { cold_start_seconds } = server;
    const waiting = (session_kv_tokens: number) => ({
      ...{ ...window(1), session_kv_tokens, kv_cache_usage_perc: 0.5, replicas_ready: 2 },
      server: { ...server, kv_cache_tokens: 100_000, host_kv_tokens: 100_000 },
    });
    // 700,000 and 100,000 of what runs, over 200,000; without sessions, replicas for the demand alone.
    assert.deepEqual(replicas([waiting(700_000)]), [4]);
    assert.deepEqual(replicas([waiting(700_000)], { sessionRoom: 1.5 }), [6]);
    assert.deepEqual(replicas([waiting(700_000), waiting(0)]), [4, 1]);
    assert.deepEqual(replicas([waiting(700_000), waiting(0)], { sessionDecay: 0.75 }), [4, 3]);
    // A growth of 0.2 x 4 replicas a window, for the windows of a cold start.
    const ahead = Math.ceil(4 + (0.8 * cold_start_seconds) / 30);
    assert.deepEqual(replicas([waiting(700_000)], { sessionTrend: 1 }), [ahead]);
  });

  test('asks for one replica at least, and for those that there are at most', () => {
    assert.deepEqual(replicas([window(1), window(1000)]), [1, calm.server.max_replicas]);
  });

  test('keeps its settings, inside what the environment takes', () => {
    const [action] = actionsOf([window(10)]);
    assert.deepEqual([action!.max_num_batched_tokens, action!.admission_seconds], [640, 0.25]);
    assert.equal(action!.routing_prefix, 2);
    // The objective leaves half of an empty iteration, so that prompts may take twice as much.
    const tight = { ...window(10), server: { ...server, tpot_objective_ms: 15 } };
    assert.equal(actionsOf([tight])[0]!.max_num_batched_tokens, 1280);
    const [clipped] = actionsOf([window(10)], { prefillShare: 0.1, admissionSeconds: 1e6 });
    assert.deepEqual([clipped!.max_num_batched_tokens, clipped!.admission_seconds], [512, 600]);
  });

  test('starts each episode anew', () => {
    const policy = demandPolicy(parameters);
    const act = (seen: Partial<FleetObservation>) =>
      policy.act({
        ...{ observation: { ...calm, ...seen }, previousAction: task.defaultAction },
        ...{ reward: 0, stepIndex: 1 },
      }).replicas;
    policy.reset();
    assert.equal(act(window(10, 8000)), 8);
    policy.reset();
    assert.equal(act(window(10)), 4);
  });
});

describe('a training on fleet', async () => {
  const run = { environment: 'fleet', task: 'flash_crowds', algorithm: 'cem', steps: 1, seed: 0 } as const;
  // Stopped before the first generation: the policy is the one that the search begins with.
  const { policy: file } = await trainPolicy(run, { signal: AbortSignal.abort() });
  const json = JSON.parse(new TextDecoder().decode(file));

  test('begins where it is said to, and writes a file that can be played', () => {
    const { policy, taskId } = loadFleetPolicy(file);
    assert.equal(taskId, 'flash_crowds');
    assert.ok(Math.abs(json.parameters.tpotShare - 0.9) < 1e-12);
    policy.reset({ taskId, seed: 1 });
    const episode = new FleetEpisode({ ...task, windows: 3 }, 1);
    while (!episode.done) {
      const { window: stepIndex, action: previousAction } = episode;
      const step = { observation: episode.observation(), reward: null, previousAction, stepIndex };
      episode.step(policy.act(step));
    }
    assert.ok(episode.totals.completed > 0);
  });

  test('on any fleet writes a file for every task', async () => {
    const any = await trainPolicy({ ...run, task: 'any' }, { signal: AbortSignal.abort() });
    const { policy, taskId } = loadFleetPolicy(any.policy);
    assert.equal(taskId, 'any');
    policy.reset({ taskId: 'agents', seed: 1 });
  });

  for (const [change, code] of [
    [{ environment: 'llmserve' }, 'POLICY_MISMATCH'],
    [{ version: '0' }, 'POLICY_MISMATCH'],
    [{ task: 'nope' }, 'POLICY_TASK'],
    [{ parameters: { ...json.parameters, tpotShare: 0 } }, 'POLICY_FILE'],
    [{ parameters: undefined }, 'POLICY_FILE'],
  ] as const) {
    test(`a file with ${Object.keys(change)} changed is refused with ${code}`, () => {
      const file = Buffer.from(JSON.stringify({ ...json, ...change }));
      assert.throws(() => loadFleetPolicy(file), { code });
    });
  }
});
