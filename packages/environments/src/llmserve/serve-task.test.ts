import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { toJsonSchema } from '@servegym/openenv';
import { EnvironmentError } from '@servegym/openenv/definition';
import { findProfile } from '@servegym/profiles';
import fc from 'fast-check';
import officeHours from '../../examples/office-hours.ts';
import type { ObservationScale } from '../feature.ts';
import { holdMaskedKnobs, requireMaskedKnobsHeld } from '../window-environment.ts';
import { returnBound, serveReturns } from './anchors/serve-anchors.ts';
import { llmserve } from './environment.ts';
import { drawRequests } from './episode-requests.ts';
import { anyAction } from './random-actions.fixture.ts';
import { shiftTask } from './scenario.ts';
import {
  OBSERVED_FIGURES,
  SERVE_KNOBS,
  SERVER_FEATURES,
  type ServeKnob,
  serveObservationSchema,
  TASK_IDS,
} from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import { activeKnobs, defineServeTask, SERVE_TASKS, type ServeTask, serveTasks } from './serve-task.ts';
import { describeTask, relativeFigures } from './server-description.ts';

const task = SERVE_TASKS.bursty_workload;

describe('the description of the server', () => {
  const describedAs = (changed: Partial<ServeTask>) =>
    new ServeEpisode({ ...task, ...changed }, 0).observation().server;

  it('tells the speed, the memory and the price of the profile', () => {
    const profile = findProfile(task.profile);
    const { law } = profile.weights.FP16!;
    const { decode_1_ms, decode_64_ms, weights_gb, kv_tokens, usd_per_hour } = describedAs({});
    const slope = (law.perDecodeSequenceUs + 1.024 * law.perContextTokenNs) / 1000;
    assert.ok(decode_64_ms - decode_1_ms > 0.9 * 63 * slope && decode_1_ms > law.weightReadUs / 1000);
    assert.ok(Math.abs(weights_gb - profile.weights.FP16!.weightGiB * 1.073741824) < 0.01);
    const pool = (kv_tokens * profile.model.kvBytesPerToken) / 1e9;
    assert.ok(pool > 15 && pool + weights_gb < 40 * 1.074, `${pool}`);
    assert.equal(usd_per_hour, profile.gpu.usdPerHour);
  });

  it('is another one for another server, and says which knobs are free', () => {
    const own = describedAs({});
    assert.deepEqual(new Set(Object.values(own.free)), new Set([true]));
    const masked = describedAs({ maskedKnobs: ['quantization_tier'] });
    assert.deepEqual(masked, { ...own, free: { ...own.free, quantization_tier: false } });
    const other = describedAs({ profile: shiftTask(task, 'other_gpu').profile });
    assert.notEqual(other.decode_64_ms, own.decode_64_ms);
    assert.equal(other.interactive_ttft_ms, own.interactive_ttft_ms);
  });

  it('is seen by policies of any server in ratios, with every price of the reward', () => {
    const paths = SERVER_FEATURES.flatMap(({ of, over }) => [of, over]);
    // The relative figures are those of one engine.
    const { free, engines: _, ...figures } = describedAs({});
    for (const name of Object.keys(figures)) {
      assert.ok(paths.includes(`server.${name}`), name);
    }
    for (const knob of Object.keys(free)) assert.ok(paths.includes(`server.free.${knob}`), knob);
    for (const name of Object.keys(new ServeEpisode(task, 0).observation().relative)) {
      assert.ok(paths.includes(`relative.${name}`), name);
    }
  });
});

describe('what tasks say of their reward', () => {
  it('is every weight and price, and what a change costs', () => {
    const { reward, changes } = describeTask(task);
    for (const part of [
      '0.4 x tokens',
      '0.6 x share',
      '0.45 x share',
      '0.05 x min(1',
      '/ 0.002',
      'batch 0.5',
    ]) {
      assert.ok(reward.includes(part), part);
    }
    assert.match(changes, /stops service for \d+\.\d s/);
  });
});

describe('the window in units of the server', () => {
  it('means the same on a server that is twice as fast', () => {
    const seen = {
      ...new ServeEpisode(task, 0).observation(),
      request_arrival_rate: 4,
      mean_prompt_length: 512,
    };
    const { server } = seen;
    const fast = { ...server, prefill_1k_ms: server.prefill_1k_ms / 2 };
    const [own, other] = [server, fast].map((each) => relativeFigures(seen, each, task, 10));
    assert.ok(Math.abs(own!.prompt_load - (4 * 512 * server.prefill_1k_ms) / 1024 / 1000 / 2) < 1e-12);
    assert.equal(other!.prompt_load, own!.prompt_load / 2);
    assert.equal(own!.kv_held, 0);
    assert.ok(Math.abs(own!.int8_charge - seen.quality_value * (1 - server.int8_quality)) < 1e-12);
  });
});

describe('the scales of the observation', () => {
  const { properties } = toJsonSchema(serveObservationSchema, 'output');
  const scaleOf = (name: string) => (properties![name] as { normalization: ObservationScale }).normalization;

  it('stand in the schema, beside every figure', () => {
    for (const name of OBSERVED_FIGURES) assert.notEqual(scaleOf(name), undefined, name);
    assert.deepEqual(scaleOf('kv_cache_occupancy'), { transform: 'linear', divisor: 1 });
    assert.deepEqual(scaleOf('queue_depth'), { transform: 'log1p', divisor: 6.909 });
    assert.equal(OBSERVED_FIGURES.length + 4, Object.keys(properties ?? {}).length);
    const { free: _, ...server } = (properties!.server as { properties: Record<string, object> }).properties;
    for (const [name, figure] of Object.entries(server)) assert.ok('normalization' in figure, name);
  });

  it('give numbers from 0 to about 1, whatever is done', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...TASK_IDS),
        fc.nat(),
        fc.array(anyAction, { minLength: 1, maxLength: 8 }),
        (taskId, seed, actions) => {
          const episode = new ServeEpisode(SERVE_TASKS[taskId], seed);
          for (const action of actions) {
            episode.step(action);
            const observation = episode.observation();
            for (const name of OBSERVED_FIGURES) {
              const { transform, divisor } = scaleOf(name);
              const figure = observation[name];
              const value = (transform === 'log1p' ? Math.log1p(figure) : figure) / divisor;
              assert.ok(value >= 0 && value < 2.5, `${value}`);
            }
          }
        },
      ),
      { numRuns: 15 },
    );
  });
});

const objective = { ttftMs: 500, tpotMs: 30, weight: 1 };
const lengths = { median: 100, sigma: 0.5, min: 16, max: 512 };

const minimal = defineServeTask({
  id: 'minimal',
  name: 'Minimal',
  description: 'As little as a task can say.',
  windows: 20,
  profile: 'a100-40gb-llama-3-8b',
  objectives: { interactive: objective, batch: objective, best_effort: objective },
  reward: { throughput: 0.4, slo: 0.6, memory: 0.3, cost: 0.1 },
  referenceCostPer1k: 0.002,
  defaultAction: SERVE_TASKS.static_workload.defaultAction,
  phases: [
    {
      name: 'only',
      windows: 20,
      arrivalsPerSecond: 5,
      traffic: { interactive: { share: 1, prompt: lengths, output: lengths } },
      qualityValue: 4,
    },
  ],
});

const refuses = (change: object, message: RegExp) =>
  assert.throws(
    () => serveTasks.parse({ ...minimal, ...change }, 'my-task.json'),
    (error) =>
      error instanceof EnvironmentError &&
      error.message.startsWith('my-task.json') &&
      message.test(error.message),
    JSON.stringify(change),
  );

describe('a task in a file', () => {
  it('may leave out what has a usual value', () => {
    const task = serveTasks.parse(minimal, 'my-task.json');
    assert.equal(task.difficulty, 'medium');
    assert.equal(task.windowSeconds, 5);
    assert.deepEqual(task.phases[0].windows, [20, 20]);
    assert.deepEqual(task.phases[0].arrivalsPerSecond, [5, 5]);
    assert.deepEqual(task.phases[0].tenantGiB, [0, 0]);
  });

  it('can say all that our own tasks say', () => {
    for (const task of Object.values(SERVE_TASKS)) {
      const { id, ...rest } = JSON.parse(JSON.stringify(task));
      assert.deepEqual(serveTasks.parse({ ...rest, id: 'copy' }, 'copy'), { ...rest, id: 'copy' });
    }
  });

  it('is refused with the field that is wrong', () => {
    const [phase] = minimal.phases;
    refuses({ id: 'With Spaces' }, /id: Expected lower-case/);
    refuses({ profile: 'a100' }, /profile: .*closest/);
    refuses({ profile: 'h100-80gb-llama-4-scout-tp2' }, /profile: .*lacks|acceptance/);
    refuses({ acceptance: 'poems' }, /acceptance: .*sharegpt/);
    refuses({ windows: 0 }, /windows/);
    refuses({ reward: { throughput: 0.8, slo: 0.8, memory: 0, cost: 0 } }, /reward: .*at most 1/);
    refuses({ defaultAction: { ...minimal.defaultAction, batch_cap: 0 } }, /defaultAction\.batch_cap/);
    refuses({ phases: [] }, /phases/);
    refuses({ phases: [{ ...phase, arrivalsPerSecond: [5, 2] }] }, /phases\.0\.arrivalsPerSecond/);
    refuses(
      { phases: [{ ...phase, traffic: { interactive: { share: 0.5, prompt: lengths, output: lengths } } }] },
      /phases\.0\.traffic: .*sum to 1/,
    );
    refuses({ rewards: {} }, /rewards/);
    assert.throws(() => serveTasks.parse(null, 'x'), EnvironmentError);
  });

  it('may mask knobs, by their names, each once, and not all of them', () => {
    const masks = ['quantization_tier', 'prefill_decode_split'] as const;
    const task = serveTasks.parse({ ...minimal, maskedKnobs: masks }, 'my-task.json');
    assert.deepEqual(task.maskedKnobs, masks);
    assert.ok(!('maskedKnobs' in serveTasks.parse(minimal, 'my-task.json')));
    refuses({ maskedKnobs: ['quantisation'] }, /maskedKnobs\.0: .*quantization_tier/);
    refuses({ maskedKnobs: ['batch_cap', 'batch_cap'] }, /maskedKnobs: Expected each knob once/);
    refuses({ maskedKnobs: [] }, /maskedKnobs: Expected at least one knob/);
    refuses({ maskedKnobs: [...SERVE_KNOBS] }, /maskedKnobs: Expected a knob to be left free/);
    refuses({ maskedKnobs: 'batch_cap' }, /maskedKnobs: /);
  });
});

describe('the task of docs/your-own-task.md', () => {
  it('data: is shown as it stands in its file', () => {
    const page = readFileSync(new URL('../../../../docs/your-own-task.md', import.meta.url), 'utf8');
    const file = readFileSync(new URL('../../examples/office-hours.ts', import.meta.url), 'utf8');
    assert.ok(page.includes(`\`\`\`ts\n${file}\`\`\`\n`));
  });

  it('can be played', () => {
    const task = serveTasks.parse(officeHours, 'office-hours.ts');
    const episode = new ServeEpisode(task, 1);
    while (!episode.done) episode.step(task.defaultAction);
    assert.ok(episode.totals.reward > 0.3 * task.windows, `${episode.totals.reward}`);
  });
});

const free: ServeTask = { ...SERVE_TASKS.bursty_workload, id: 'all_free', windows: 12 };
const anyMask = fc.subarray([...SERVE_KNOBS], { minLength: 1, maxLength: SERVE_KNOBS.length - 1 });
const masking = (maskedKnobs: readonly ServeKnob[], change: Partial<ServeTask> = {}): ServeTask => ({
  ...free,
  id: 'masked',
  maskedKnobs,
  ...change,
});
const isMaskedKnob = (error: unknown) => error instanceof EnvironmentError && error.code === 'MASKED_KNOB';

describe('the knobs that a task masks', () => {
  it('are those that are not active, and held at the default', () => {
    fc.assert(
      fc.property(anyMask, anyAction, (maskedKnobs, action) => {
        const task = masking(maskedKnobs);
        assert.deepEqual([...maskedKnobs, ...activeKnobs(task)].sort(), [...SERVE_KNOBS].sort());
        const held = holdMaskedKnobs(task, action);
        for (const knob of maskedKnobs) assert.equal(held[knob], task.defaultAction[knob]);
        for (const knob of activeKnobs(task)) assert.equal(held[knob], action[knob]);
        assert.deepEqual(requireMaskedKnobsHeld(task, held), held);
      }),
    );
    assert.equal(holdMaskedKnobs(free, free.defaultAction), free.defaultAction);
  });

  it('are refused by name when an action turns them, and none else is', () => {
    fc.assert(
      fc.property(anyMask, anyAction, (maskedKnobs, action) => {
        const task = masking(maskedKnobs);
        const turned = maskedKnobs.filter((knob) => action[knob] !== task.defaultAction[knob]);
        const kept = maskedKnobs.filter((knob) => !turned.includes(knob));
        try {
          requireMaskedKnobsHeld(task, action);
          assert.deepEqual(turned, []);
        } catch (error) {
          assert.ok(isMaskedKnob(error), String(error));
          const { message } = error as Error;
          for (const knob of turned) assert.ok(message.includes(`\`${knob}\``), message);
          for (const knob of kept) assert.ok(!message.includes(`\`${knob}\``), message);
        }
      }),
    );
  });

  it('take a default that has come as a float32 for the default', () => {
    const task = masking(['kv_budget_fraction'], {
      defaultAction: { ...free.defaultAction, kv_budget_fraction: 0.6 },
    });
    const sent = { ...task.defaultAction, kv_budget_fraction: Math.fround(0.6) };
    assert.deepEqual(requireMaskedKnobsHeld(task, sent), task.defaultAction);
  });

  it('leave the episode as it was when they are refused', async () => {
    const task = masking(['quantization_tier', 'prefill_decode_split']);
    serveTasks.add(task);
    const turned = { ...task.defaultAction, quantization_tier: 'INT4' } as const;
    const [refused, other] = [llmserve.definition().create(), llmserve.definition().create()];
    await refused.reset({ task_id: task.id, seed: 5 });
    await other.reset({ task_id: task.id, seed: 5 });
    for (let window = 0; window < task.windows; window++) {
      const before = refused.state();
      assert.throws(() => refused.step(turned), isMaskedKnob);
      assert.deepEqual(refused.state(), before);
      const action = { ...task.defaultAction, batch_cap: 32 + window };
      assert.deepEqual(await refused.step(action), await other.step(action));
    }
    assert.throws(
      () => llmserve.grade({ reset: { task_id: task.id, seed: 5 }, actions: [task.defaultAction, turned] }),
      isMaskedKnob,
    );
  });

  it('are told with the task, and shipped tasks have none', () => {
    serveTasks.add(masking(['quantization_tier', 'prefill_decode_split']));
    for (const { id, active_actions, masked_actions } of llmserve.definition().tasks ?? []) {
      const mask = id === 'masked' ? ['quantization_tier', 'prefill_decode_split'] : [];
      assert.deepEqual(masked_actions, mask);
      assert.deepEqual(
        active_actions,
        SERVE_KNOBS.filter((knob) => !mask.includes(knob)),
      );
    }
    for (const task of Object.values(SERVE_TASKS)) assert.ok(!('maskedKnobs' in task));
  });

  it('lower the bound of a return to what can still be played', () => {
    const masks: readonly ServeKnob[] = ['quantization_tier', 'kv_budget_fraction', 'speculation_depth'];
    fc.assert(
      fc.property(
        fc.nat(),
        anyAction,
        fc.array(anyAction, { minLength: 1, maxLength: 4 }),
        (seed, standard, actions) => {
          const task = masking(masks, { defaultAction: standard });
          const requests = drawRequests(task, seed);
          const bound = returnBound(task, requests);
          assert.ok(bound <= returnBound(free, requests) + 1e-9);
          const episode = new ServeEpisode(task, seed, { requests });
          while (!episode.done) {
            episode.step(holdMaskedKnobs(task, actions[episode.window % actions.length]));
          }
          assert.ok(episode.totals.reward < bound, `${episode.totals.reward} of at most ${bound}`);
        },
      ),
      { numRuns: 12 },
    );
    const dear = masking(['kv_budget_fraction'], {
      defaultAction: { ...free.defaultAction, kv_budget_fraction: 1 },
    });
    const requests = drawRequests(dear, 1);
    assert.ok(returnBound(dear, requests) < returnBound(free, requests) - 0.5);
  });

  it('tell a task from the same one with all knobs free', () => {
    assert.notEqual(
      serveReturns.fingerprint(masking(['priority_routing'], { id: free.id })),
      serveReturns.fingerprint(free),
    );
  });
});
