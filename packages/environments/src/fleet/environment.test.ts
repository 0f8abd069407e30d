import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EnvironmentError } from '@servegym/openenv/definition';
import { findProfile } from '@servegym/profiles';
import { TICKS_PER_S } from '@servegym/simulator';
import type { FleetController } from './anchors/controllers.ts';
import {
  controlledReturn,
  type FleetAnchors,
  fleetReturns,
  hpaInFlight,
  ruleController,
} from './anchors/fleet-anchors.ts';
import { drawFleetRequests } from './draw-requests.ts';
import { fleet as registered } from './environment.ts';
import { FleetEpisode } from './fleet-episode.ts';
import { FLEET_TASKS } from './fleet-task.ts';
import { chooseFleetTask, fleetEpisodeSize } from './scenario.ts';
import { FLEET_TASK_IDS, type FleetAction, fleetStateSchema } from './schema.ts';
import type { FleetWindowReport } from './window-ledger.ts';

const codeOf = (code: string) => (error: unknown) => error instanceof EnvironmentError && error.code === code;
const fleet = registered.definition();
const { agents: task } = FLEET_TASKS;
const { defaultAction: standard } = task;

describe('the fleet environment', () => {
  it('earns what the requests inside their objectives are worth, less the GPUs, and keeps totals', async () => {
    const environment = fleet.create();
    const { observation, reward } = await environment.reset({ task_id: 'agents', seed: 3 });
    assert.deepEqual([observation.task_id, observation.step_index, reward], ['agents', 0, null]);
    let sum = 0;
    for (let window = 1; window <= 4; window++) {
      const { reward, metadata } = await environment.step(standard);
      const { revenue_usd, gpu_usd } = (metadata as unknown as FleetWindowReport).reward_components;
      assert.ok(Math.abs((revenue_usd - gpu_usd) / task.referenceUsd - (reward ?? 0)) < 1e-12);
      sum += reward ?? 0;
    }
    const state = fleetStateSchema.parse(environment.state());
    assert.deepEqual([state.cumulative_reward, state.elapsed_simulated_time_s], [sum, 120]);
    assert.ok(state.total_attained > 100 && state.total_attained <= state.total_requests);
  });

  it('lets replicas that no GPU is free for wait', async () => {
    const environment = fleet.create();
    await environment.reset({ task_id: 'agents', seed: 3 });
    const { observation } = await environment.step({ ...standard, replicas: 32, second_replicas: 3 });
    assert.equal(observation.replicas_ready + observation.replicas_starting, task.maxReplicas);
  });

  it('bills two kinds of replicas by their prices', () => {
    const second = { profile: 'a100-80gb-llama-3-8b', coldStartSeconds: [30, 30] } as const;
    const episode = new FleetEpisode({ ...task, second, maxReplicas: 5 }, 3);
    episode.step({ ...standard, second_replicas: 4 });
    const [h100, a100] = episode.profiles.map(({ gpu }) => gpu.count * gpu.usdPerHour);
    assert.ok(Math.abs(episode.billUsd - ((4 * h100 + a100) * 30) / 3600) < 1e-12);
    assert.equal(episode.observation().second_replicas_starting, 1);
    assert.equal(episode.observation().server.second.usd_per_replica_hour, a100);
    episode.step({ ...standard, second_replicas: 1 });
    assert.deepEqual(
      [episode.observation().second_replicas_ready, episode.observation().replicas_ready],
      [1, 5],
    );
  });

  it('bills spot replicas by their share of the price, and says how often they are taken back', () => {
    const spot = chooseFleetTask({ task_id: 'agents', shift: 'spot' });
    const episode = new FleetEpisode(spot, 3);
    episode.step({ ...standard, second_replicas: 5 });
    const [{ gpu }] = episode.profiles;
    assert.ok(Math.abs(episode.billUsd - ((4 + 0.4 * 5) * gpu.usdPerHour * 30) / 3600) < 1e-12);
    const { server } = episode.observation();
    assert.ok(Math.abs(server.second.usd_per_replica_hour - 0.4 * server.usd_per_replica_hour) < 1e-9);
    assert.deepEqual([server.reclaims_per_hour, server.second.reclaims_per_hour], [0, 1]);
  });

  it('refuses what it cannot do, with a code', () => {
    assert.throws(() => fleet.create().step(standard), codeOf('NOT_RESET'));
    assert.throws(() => fleet.create().reset({ task_id: 'nope' }), codeOf('UNKNOWN_TASK'));
    assert.throws(() => fleet.create().reset({ seed: -1 }), codeOf('INVALID_SEED'));
  });
});

describe('the reset options of fleet', () => {
  it('change the task as they say', () => {
    const changed = (options: object) => chooseFleetTask({ task_id: 'flash_crowds', ...options });
    const { flash_crowds: plain } = FLEET_TASKS;
    const [chat] = plain.streams;
    assert.equal(changed({}), plain);
    assert.equal(changed({ hours: 24 }).windows, 2880);
    assert.equal(changed({ rate_scale: 0.5 }).streams[0].rate.perSecond, chat.rate.perSecond / 2);
    assert.equal(
      changed({ shift: 'rate_1.3', rate_scale: 2 }).streams[0].rate.perSecond,
      2.6 * chat.rate.perSecond,
    );
    assert.deepEqual(changed({ shift: 'slow_cold_start' }).coldStartSeconds, [60, 300]);
    const { profile, coldStartSeconds } = changed({});
    const spot = { priceShare: 0.4, reclaimsPerHour: 1, noticeSeconds: 120 };
    assert.deepEqual(changed({ shift: 'spot' }).second, { profile, coldStartSeconds, spot });
    assert.equal(changed({ shift: 'failures' }).failuresPerHour, 0.5);
    assert.equal(changed({ profile: 'l40s-48gb-llama-3-8b' }).profile, 'l40s-48gb-llama-3-8b');
    assert.equal(changed({ second_profile: 'l40s-48gb-llama-3-8b' }).second?.profile, 'l40s-48gb-llama-3-8b');
    const other = findProfile(changed({ shift: 'other_gpu' }).profile);
    assert.deepEqual([other.model.name, other.gpu.name === 'H100-80GB'], ['Llama-3-8B', false]);
    assert.deepEqual(changed({ shift: 'burstier' }).streams[0].rate.surges?.[0], {
      ...{ everySeconds: 400, factor: [3.25, 7], seconds: [20, 50], rampSeconds: 5 },
    });
    const longer = drawFleetRequests(changed({ shift: 'long_prompts', hours: 0.1 }), 1).inputTokens;
    const before = drawFleetRequests(changed({ hours: 0.1 }), 1).inputTokens;
    const sum = (tokens: Int32Array) => tokens.reduce((all, each) => all + each, 0);
    assert.equal(longer.length, before.length);
    assert.ok(sum(longer) > 1.35 * sum(before));
  });

  it('play a trace of one’s own to its end, with its classes, as fast as they say', async () => {
    const trace = {
      arrival_s: [0, 30, 100],
      input_tokens: [100, 200, 300],
      output_tokens: [10, 10, 10],
      class: ['interactive', 'batch', 'interactive'],
    };
    const environment = fleet.create();
    const reset = { task_id: 'agents', seed: 1, trace, rate_scale: 2 };
    assert.equal(fleetEpisodeSize(reset), 3);
    let { done, observation } = await environment.reset(reset);
    let windows = 0;
    for (; !done; windows++) ({ done, observation } = await environment.step(standard));
    assert.deepEqual([windows, observation.hour_of_day], [3, 90 / 3600]);
    const { total_requests, total_completed, trace: played } = environment.state();
    assert.deepEqual([total_requests, total_completed], [3, 3]);
    assert.match(String(played), /^columns@sha256:[0-9a-f]{64}$/);
    const { classes, startTicks } = drawFleetRequests(chooseFleetTask(reset), 1);
    assert.deepEqual([[...classes], startTicks[2]], [[0, 1, 0], 50 * TICKS_PER_S]);
    assert.ok(registered.grade({ reset, actions: [standard, standard, standard] }).score > 0);
    for (const [change, code] of [
      [{ trace: 'nope' }, 'UNKNOWN_TRACE'],
      [{ trace: { ...trace, output_tokens: [1] } }, 'INVALID_TRACE'],
      [{ shift: 'burstier' }, 'SHIFT_IMPOSSIBLE'],
    ] as const) {
      assert.throws(() => chooseFleetTask({ ...reset, ...change }), codeOf(code));
    }
  });

  it('draw a fleet by the seed, of as many windows as any, and change nothing of it', async () => {
    const environment = fleet.create();
    const observed = [3, 3, 4].map((seed) => registered.choose({ servers: 'any', seed }));
    assert.deepEqual(observed[0], observed[1]);
    assert.notDeepEqual(observed[0], observed[2]);
    for (const { windows } of observed) assert.equal(windows, 120);
    assert.ok(registered.episodeSize({ servers: 'any', seed: 3 }) > 0);
    await environment.reset({ servers: 'any', seed: 3, task_id: 'diurnal' });
    const { done } = await environment.step(observed[0]!.defaultAction);
    assert.equal(done, false);
    assert.equal(environment.state().profile, observed[0]!.profile);
    for (const beside of [{ hours: 1 }, { profile: 'l40s-48gb-llama-3-8b' }, { shift: 'spot' }])
      assert.throws(
        () => registered.choose({ servers: 'any', seed: 3, ...beside }),
        codeOf('CONFLICTING_OPTIONS'),
      );
  });

  it('tell about how many requests they make, and are refused with a code', () => {
    for (const task_id of FLEET_TASK_IDS) {
      const reset = { task_id, hours: 24, rate_scale: 0.1 };
      const drawn = drawFleetRequests(chooseFleetTask(reset), 1).inputTokens.length;
      assert.ok(Math.abs(Math.log(fleetEpisodeSize(reset) / drawn)) < 0.25, `${task_id}: ${drawn}`);
    }
    for (const [option, value, code] of [
      ['hours', 25, 'INVALID_HOURS'],
      ['hours', '1', 'INVALID_HOURS'],
      ['rate_scale', 0, 'INVALID_RATE_SCALE'],
      ['profile', 'nope', 'UNKNOWN_PROFILE'],
      ['second_profile', 1, 'UNKNOWN_PROFILE'],
      ['shift', 'nope', 'UNKNOWN_SHIFT'],
    ] as const) {
      assert.throws(() => fleet.create().reset({ [option]: value }), codeOf(code), option);
      assert.equal(fleetEpisodeSize({ [option]: value }), 0);
    }
  });

  it('list episodes as splits of each task, and all shifts of the test seeds', () => {
    assert.deepEqual(
      fleet.splits?.map(({ name, size }) => [name, size]),
      [
        ['train', 40_000],
        ['validation', 400],
        ['test', 400],
        ['shifted', 2800],
      ],
    );
    for (const { task, size } of fleet.splits ?? []) chooseFleetTask(task(size - 1));
  });
});

describe('the grade of an episode of fleet', () => {
  const seed = 2_000_003;
  const reset = { task_id: 'agents', seed, hours: 0.5 };
  const task = chooseFleetTask(reset);

  /** Actions of a controller on the episode. */
  function played(controller: FleetController): FleetAction[] {
    const actions: FleetAction[] = [];
    controlledReturn(task, seed, drawFleetRequests(task, seed), {
      name: controller.name,
      reset: () => controller.reset(),
      act(step) {
        actions.push(controller.act(step));
        return actions[actions.length - 1];
      },
    });
    return actions;
  }

  it('is 0.20 for the autoscaler, and less for an early stop', () => {
    const requests = drawFleetRequests(task, seed);
    const actions = played(hpaInFlight());
    const grade = registered.grade({ reset, actions });
    assert.equal(grade.score, 0.2);
    const stopped = registered.grade({ reset, actions: actions.slice(0, 50) });
    assert.ok(stopped.score > 0 && stopped.score < 0.2);
    assert.match(stopped.feedback, /10 of 60 windows were not played/);
    const episode = new FleetEpisode(task, seed, requests);
    for (const action of actions.slice(0, 50)) episode.step(action);
    const [{ gpu }] = episode.profiles;
    const idle = (10 * task.maxReplicas * gpu.count * gpu.usdPerHour * 30) / 3600 / task.referenceUsd;
    assert.ok(Math.abs(Number(stopped.breakdown.return) - (episode.totals.reward - idle)) < 1e-9);
  });

  it('tells of the gain over the autoscaler in USD, and of a planner above it', () => {
    const bad = Array.from({ length: 60 }, () => ({ ...standard, replicas: 16, max_num_active_seqs: 1 }));
    const grades = [played(ruleController(fleetReturns.reference('agents')?.rule)), bad].map((actions) =>
      registered.grade({ reset, actions }),
    );
    const [better, worse] = grades;
    assert.match(better.feedback, /^Better .* by USD [0-9.]+: \d+ % .* Not more than the tuned rule\.$/);
    assert.equal(better.score, 0.5);
    assert.match(worse.feedback, /^Worse .* by USD/);
    assert.ok(worse.score < 0.2);
    for (const { breakdown } of grades) {
      const anchors = breakdown.anchors as FleetAnchors;
      assert.ok(anchors.clairvoyant > Math.max(anchors.default, anchors.rule));
      assert.ok(anchors.clairvoyant <= anchors.bound);
      const { default: low, clairvoyant: high } = breakdown.anchor_scores as Record<string, number>;
      assert.deepEqual([low, high], [0.2, 0.95]);
      assert.equal(breakdown.regret, anchors.clairvoyant - Number(breakdown.return));
    }
  });

  it('refuses more actions than there are windows', () => {
    const actions = Array.from({ length: 61 }, () => standard);
    assert.throws(() => registered.grade({ reset, actions }), codeOf('EPISODE_TOO_LONG'));
  });
});

describe('the recorded returns of fleet', () => {
  for (const taskId of FLEET_TASK_IDS) {
    const task = FLEET_TASKS[taskId];
    const reference = fleetReturns.reference(taskId)!;

    it(`data: are those of this task on this simulator; if not, \`benchmarks/run.ts references\` makes them anew (${taskId})`, () => {
      assert.equal(reference.fingerprint, fleetReturns.fingerprint(task));
    });

    it(`are what the autoscaler and the rule earn (${taskId})`, () => {
      const [seed, recorded] = Object.entries(reference.seeds)[0]!;
      const requests = drawFleetRequests(task, Number(seed));
      for (const [controller, earned] of [
        [hpaInFlight(), recorded.default],
        [ruleController(reference.rule), recorded.rule],
      ] as const) {
        const played = controlledReturn(task, Number(seed), requests, controller);
        assert.ok(Math.abs(played - earned) < 1e-6, `${controller.name} ${played} ${earned}`);
      }
    });

    it(`data: have a planner that is never below the rule (${taskId})`, () => {
      for (const { rule, clairvoyant } of Object.values(reference.seeds)) assert.ok(clairvoyant >= rule);
    });
  }
});
