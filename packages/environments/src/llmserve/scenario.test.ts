import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EnvironmentError } from '@servegym/openenv/definition';
import { findProfile } from '@servegym/profiles';
import type { Trace } from '@servegym/simulator';
import fc from 'fast-check';
import { addServeTrace, MOST_INLINE_REQUESTS } from '../traces.ts';
import { llmserve } from './environment.ts';
import { drawRequests } from './episode-requests.ts';
import { chooseTask, SHIFTS, serveResetOptions } from './scenario.ts';
import { TASK_IDS } from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import { SERVE_TASKS, serveTasks } from './serve-task.ts';

const columns = { arrival_s: [0, 0.5, 2], input_tokens: [100, 200, 300], output_tokens: [10, 20, 30] };

function traceOf(lengths: readonly number[]): Trace {
  return {
    source: 'test',
    arrivalMs: Float64Array.from(lengths, (_, i) => i * 1000),
    inputTokens: Int32Array.from(lengths),
    outputTokens: Int32Array.from(lengths),
  };
}

const refuses = (options: Record<string, unknown>, code: string, message = /Expected/) =>
  assert.throws(
    () => chooseTask(options),
    (error) => error instanceof EnvironmentError && error.code === code && message.test(error.message),
    JSON.stringify(options).slice(0, 200),
  );

describe('what reset takes', () => {
  it('is refused with a code where it cannot be honoured', () => {
    refuses({ task_id: 'nope' }, 'UNKNOWN_TASK', /static_workload/);
    refuses({ task_id: 'toString' }, 'UNKNOWN_TASK');
    refuses({ traffic: 'nope' }, 'UNKNOWN_TRAFFIC', /azure-code-2023/);
    refuses({ traffic: '__proto__' }, 'UNKNOWN_TRAFFIC');
    refuses({ shift: 'rate_2' }, 'UNKNOWN_SHIFT', /other_gpu/);
    refuses({ profile: 'h100' }, 'UNKNOWN_PROFILE', /h100-80gb-llama-3-8b,/);
    refuses({ profile: 3 }, 'UNKNOWN_PROFILE');
    refuses({ trace: 'nope' }, 'UNKNOWN_TRACE', /--trace FILE|one of/);
    refuses({ traffic: 'azure-code-2023', trace: columns }, 'CONFLICTING_OPTIONS', /leave one out/);
    for (const rate_scale of [0, -1, 21, Number.NaN, Number.POSITIVE_INFINITY, '2', null]) {
      refuses({ rate_scale }, 'INVALID_RATE_SCALE', /0\.01 to 20/);
    }
  });

  it('takes a trace as columns, and says what is wrong with them', () => {
    const wrong = (change: object, message: RegExp) =>
      refuses({ trace: { ...columns, ...change } }, 'INVALID_TRACE', message);
    wrong({ output_tokens: [1, 2] }, /as many entries as arrival_s has, 3, got 2/);
    wrong({ arrival_s: [0, 2, 1] }, /trace\.arrival_s\.2/);
    wrong({ arrival_s: [0, 1, Number.NaN] }, /trace\.arrival_s\.2/);
    wrong({ arrival_s: [-1, 0, 1] }, /trace\.arrival_s\.0/);
    wrong({ input_tokens: [0, 1, 1] }, /trace\.input_tokens\.0/);
    wrong({ input_tokens: [1.5, 1, 1] }, /trace\.input_tokens\.0/);
    wrong({ input_tokens: [1, Number.NaN, 1] }, /trace\.input_tokens\.1/);
    wrong({ input_tokens: [1, '1', 1] }, /trace\.input_tokens\.1/);
    wrong({ input_tokens: Object.assign(new Array(3), { 0: 1, 2: 1 }) }, /trace\.input_tokens\.1/);
    wrong({ input_tokens: { ...[1, 1, 1], length: 3 } }, /trace\.input_tokens: .*array/);
    wrong({ output_tokens: undefined }, /trace\.output_tokens: .*array/);
    wrong({ arrival_s: [0, Number.POSITIVE_INFINITY, 2] }, /trace\.arrival_s\.1/);
    wrong({ class: ['interactive', 'batch', 'urgent'] }, /trace\.class\.2/);
    wrong({ priority: [1, 2, 3] }, /priority/);
    wrong({ arrival_s: [], input_tokens: [], output_tokens: [] }, /arrival_s/);
    const many = new Array(MOST_INLINE_REQUESTS + 1).fill(1);
    wrong({ arrival_s: many, input_tokens: many, output_tokens: many }, /arrival_s/);
    wrong(
      {
        arrival_s: Array.from({ length: 20_000 }, (_, i) => i / 1e6),
        input_tokens: new Array(20_000).fill(1),
        output_tokens: new Array(20_000).fill(1),
      },
      /at most 250000 requests an episode/,
    );
  });

  it('tells of some wrong entries of a column, however many there are', () => {
    const wrong = { arrival_s: [0], output_tokens: [1], input_tokens: new Array(20_000).fill('x') };
    const { error } = serveResetOptions().safeParse({ trace: wrong });
    const [union] = error!.issues as unknown as [{ errors: [unknown, { path: unknown[] }[]] }];
    const places = union.errors[1].filter(({ path }) => path[0] === 'input_tokens' && path.length > 1);
    assert.equal(places.length, 10);
    assert.deepEqual(places[1].path, ['input_tokens', 1]);
  });

  it('answers whatever is sent with a task or an error that has a code', () => {
    const schema = serveResetOptions();
    const anything = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom<unknown>(
        'static_workload',
        'azure-code-2023',
        'rate_1.5',
        'x@sha256:',
        columns,
        undefined,
      ),
      fc.record(
        {
          arrival_s: fc.array(fc.oneof(fc.double(), fc.integer({ min: 0, max: 99 })), { maxLength: 4 }),
          input_tokens: fc.array(fc.integer({ min: -1, max: 2 ** 40 }), { maxLength: 4 }),
          output_tokens: fc.array(fc.double({ max: 1e6 }), { maxLength: 4 }),
        },
        { requiredKeys: [] },
      ),
    );
    const names = ['task_id', 'traffic', 'trace', 'rate_scale', 'profile', 'shift', 'seed'];
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), anything), (options) => {
        schema.safeParse(options);
        try {
          assert.equal(typeof chooseTask(options).id, 'string');
        } catch (error) {
          assert.ok(error instanceof EnvironmentError, String(error));
        }
      }),
      { numRuns: 300 },
    );
  });

  it('reads the columns of a reset once, whatever is played with them, and others anew', () => {
    const traceOfTask = (options: Record<string, unknown>) => {
      const { source } = chooseTask(options);
      return source?.requests.kind === 'trace' ? source.requests.trace : undefined;
    };
    const read = serveResetOptions().parse({ trace: columns });
    const trace = traceOfTask(read);
    assert.ok(trace);
    assert.equal(traceOfTask({ ...read, seed: 2 }), trace);
    const changing = { ...columns, output_tokens: [10, 20, 30] };
    const before = traceOfTask({ trace: changing })?.digest;
    assert.equal(before, trace.digest);
    changing.output_tokens[0] = 11;
    assert.notEqual(traceOfTask({ trace: changing })?.digest, before);
  });

  it('pins a trace of the server by what it holds, and refuses it when that has changed', () => {
    addServeTrace('pinned', traceOf([5, 6, 7]));
    const read = serveResetOptions().parse({ trace: 'pinned' });
    assert.match(String(read.trace), /^pinned@sha256:[0-9a-f]{64}$/);
    assert.equal(chooseTask(read).source?.name, 'pinned');
    // Whoever names the digest gets it back as it is.
    assert.equal(serveResetOptions().parse(read).trace, read.trace);
    addServeTrace('pinned', traceOf([5, 6, 8]));
    refuses(read, 'TRACE_CHANGED', /the file has changed/);
    addServeTrace('pinned', traceOf([5, 6, 7]));
    assert.equal(chooseTask(read).source?.name, 'pinned');
  });

  it('tells in the state what is played', () => {
    addServeTrace('told', traceOf([5, 6, 7]));
    const environment = llmserve.definition().create();
    environment.reset({ trace: 'told', rate_scale: 2, shift: 'other_gpu', seed: 1 });
    const { trace, rate_scale, shift, traffic, workload_phase } = environment.state();
    assert.match(String(trace), /^told@sha256:/);
    assert.deepEqual(
      { rate_scale, shift, traffic, workload_phase },
      { rate_scale: 2, shift: 'other_gpu', traffic: null, workload_phase: 'told' },
    );
    environment.reset({ traffic: 'azure-code-2023', seed: 1 });
    assert.equal(environment.state().traffic, 'azure-code-2023');
    assert.equal(environment.state().trace, null);
  });

  it('plays every task on every profile that it offers, and on none other', () => {
    const offered = serveResetOptions().shape.profile.unwrap().options;
    assert.ok(offered.length > 30, `${offered.length} profiles`);
    const environment = llmserve.definition().create();
    for (const profile of offered) {
      for (const task of Object.values(SERVE_TASKS)) {
        environment.reset({ task_id: task.id, profile, seed: 3 });
        assert.equal(environment.state().profile, profile);
        for (const quantization_tier of ['FP16', 'INT4'] as const) {
          const { reward } = environment.step({ ...task.defaultAction, quantization_tier }) as {
            reward: number;
          };
          assert.ok(Number.isFinite(reward), `${task.id} on ${profile}`);
        }
      }
    }
  });

  it('takes another GPU or model than that of the profile', () => {
    const profile = 'h100-80gb-llama-3-8b';
    const own = chooseTask({ profile });
    assert.equal(own.profile, profile);
    assert.match(chooseTask({ profile, shift: 'other_gpu' }).profile, /^(?!h100).*llama-3-8b$/);
    assert.match(chooseTask({ profile, shift: 'other_model' }).profile, /^h100-80gb-(?!llama-3-8b)/);
  });

  it('draws a server by the seed with its own times, in as many windows as any', () => {
    const environment = llmserve.definition().create();
    const drawn = Array.from({ length: 12 }, (_, seed) => llmserve.choose({ servers: 'any', seed }));
    assert.deepEqual(llmserve.choose({ servers: 'any', seed: 3 }), drawn[3]);
    for (const [seed, { server, windows, profile }] of drawn.entries()) {
      assert.equal(windows, 120);
      assert.equal(llmserve.start(drawn[seed]!, seed).profile, server);
      environment.reset({ servers: 'any', seed });
      assert.equal(environment.state().profile, profile);
      assert.ok(llmserve.episodeSize({ servers: 'any', seed }) > 0);
    }
    assert.ok(
      drawn.some(
        ({ server, profile }) =>
          server!.weights.FP16!.law.baseUs !== findProfile(profile).weights.FP16!.law.baseUs,
      ),
    );
    assert.throws(() => llmserve.choose({ servers: 'any', seed: 1, traffic: 'azure-code-2023' }), {
      code: 'CONFLICTING_OPTIONS',
    });
  });

  it('leaves an episode alone when a later reset fails', () => {
    const environment = llmserve.definition().create();
    environment.reset({ task_id: 'bursty_workload', traffic: 'azure-code-2023', seed: 1 });
    environment.step(SERVE_TASKS.bursty_workload.defaultAction);
    const before = environment.state();
    assert.throws(() => environment.reset({ shift: 'nope' }));
    assert.deepEqual(environment.state(), before);
  });

  it('lists and plays a task of ones own beside the three', () => {
    serveTasks.add({ ...SERVE_TASKS.static_workload, id: 'my_own', windows: 3 });
    const own = llmserve.definition();
    assert.deepEqual(own.tasks?.map(({ id }) => id).slice(3), ['my_own']);
    const environment = own.create();
    const { observation } = environment.reset({ task_id: 'my_own' }) as { observation: { task_id: string } };
    assert.equal(observation.task_id, 'my_own');
    assert.throws(() => serveTasks.add(SERVE_TASKS.static_workload), RangeError);
  });
});

const mean = (values: ArrayLike<number>) => Array.from(values).reduce((a, b) => a + b, 0) / values.length;

describe('shifted tasks', () => {
  for (const task_id of TASK_IDS) {
    it(`keep what an agent is told, and can be played (${task_id})`, () => {
      const own = SERVE_TASKS[task_id];
      for (const shift of SHIFTS) {
        const task = chooseTask({ task_id, shift });
        assert.equal(task.id, own.id);
        assert.deepEqual(task.defaultAction, own.defaultAction);
        assert.deepEqual(task.objectives, own.objectives);
        assert.equal(task.windows, own.windows);
        const episode = new ServeEpisode(task, 2_000_000);
        for (let w = 0; w < 5; w++) episode.step(task.defaultAction);
        assert.ok(Number.isFinite(episode.totals.reward));
      }
    });

    it(`differ from the task in what their name says (${task_id})`, () => {
      const own = SERVE_TASKS[task_id];
      const drawn = (shift?: string) =>
        drawRequests(chooseTask({ task_id, ...(shift && { shift }) }), 2_000_000);
      const plain = drawn();
      const faster = drawn('rate_1.5');
      const longer = drawn('long_prompts');
      const more = faster.arrivalTicks.length / plain.arrivalTicks.length;
      assert.ok(Math.abs(more - 1.5) < 0.1, `${more} times the arrivals`);
      assert.deepEqual(longer.arrivalTicks, plain.arrivalTicks);
      assert.deepEqual(longer.outputTokens, plain.outputTokens);
      const length = mean(longer.inputTokens) / mean(plain.inputTokens);
      assert.ok(Math.abs(length - 2) < 0.02, `prompts ${length} times as long`);

      const profile = findProfile(own.profile);
      const otherGpu = findProfile(chooseTask({ task_id, shift: 'other_gpu' }).profile);
      const otherModel = findProfile(chooseTask({ task_id, shift: 'other_model' }).profile);
      assert.notEqual(otherGpu.gpu.name, profile.gpu.name);
      assert.equal(otherGpu.model.name, profile.model.name);
      assert.equal(otherModel.gpu.name, profile.gpu.name);
      assert.notEqual(otherModel.model.name, profile.model.name);
    });
  }

  it('go together with the traffic of a trace', () => {
    const task = chooseTask({ traffic: 'azure-code-2023', shift: 'long_prompts', rate_scale: 2 });
    assert.equal(task.source?.promptScale, 2);
    assert.equal(task.source?.rateScale, 2);
  });
});
