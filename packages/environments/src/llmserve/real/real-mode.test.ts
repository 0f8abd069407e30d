import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { llmserve } from '../environment.ts';
import { DEFAULT_ACTION, type ServeAction, serveObservationSchema } from '../schema.ts';
import {
  type Behaviour,
  type MisbehavingServer,
  startMisbehavingServer,
} from './misbehaving-server.fixture.ts';
import type { RealReport } from './real-episode.ts';
import { type RealSettings, readRealSettings } from './real-settings.ts';

const realEnvironment = (real: RealSettings) => llmserve.definition({ real });

describe('real mode', () => {
  let server: MisbehavingServer;
  before(async () => {
    server = await startMisbehavingServer();
  });
  after(() => server.close());
  beforeEach(() => {
    server.behaviour = 'correct';
    server.bodies.length = 0;
  });

  /** Plays windows of 25 ms, five seconds of the task. */
  const settings = (changes: Partial<RealSettings> = {}): RealSettings => ({
    provider: 'openai',
    baseUrl: server.baseUrl,
    apiKey: 'sk-0123456789',
    model: null,
    maxRequestsPerStep: 6,
    maxPromptTokens: 40,
    maxCompletionTokens: 5,
    timeoutSeconds: 5,
    retries: 2,
    timeScale: 200,
    inputUsdPerMillion: null,
    outputUsdPerMillion: null,
    ...changes,
  });

  /** Plays one window and answers what came of it. */
  async function play(changes: Partial<RealSettings> = {}, action: ServeAction = DEFAULT_ACTION) {
    const environment = realEnvironment(settings(changes)).create();
    try {
      await environment.reset({ task_id: 'static_workload', seed: 1 });
      // The warm-up.
      server.bodies.length = 0;
      server.mostOpen = 0;
      const { observation, reward, metadata } = await environment.step(action);
      // The server hears a moment later that its clients have gone; one that was left running would keep it waiting.
      while (server.open > 0) await new Promise(setImmediate);
      return { observation, reward, report: metadata as unknown as RealReport, environment };
    } finally {
      await environment.close?.();
    }
  }

  it('sends the task’s requests, cut to the budget, and measures them', async () => {
    const { observation, reward, report } = await play();
    assert.deepEqual(serveObservationSchema.parse(observation), observation);
    assert.equal(server.bodies.length, 6);
    assert.ok(report.requests.in_task > 40, `${report.requests.in_task}`);
    assert.deepEqual(report.requests, { ...report.requests, sent: 6, completed: 6, failed: {}, retries: 0 });
    assert.deepEqual(report.tokens, { prompt: 66, completion: 30 });
    assert.equal(observation.mean_prompt_length, 11);
    assert.equal(observation.request_arrival_rate, 6 / 5);
    assert.ok(observation.p50_ttft_ms > 0 && observation.p99_ttft_ms >= observation.p50_ttft_ms);
    assert.ok(observation.throughput_tps > 0 && observation.throughput_tps <= 6);
    assert.ok(reward! > -1 && reward! <= 1);
    for (const body of server.bodies) {
      assert.equal(body.model, 'first');
      assert.equal(body.max_tokens, 5);
      const [message] = body.messages as { content: string }[];
      assert.ok(message!.content.length <= 160 && message!.content.length > 10);
      assert.equal('ignore_eos' in body, false);
    }
    const prompts = server.bodies.map((body) => JSON.stringify(body.messages));
    assert.equal(new Set(prompts).size, 6);
  });

  it('tells which knobs have no effect and which figures nobody measures, and invents neither', async () => {
    const { observation, report } = await play();
    assert.deepEqual(report.applied, { batch_cap: 'client' });
    assert.deepEqual(Object.keys(report.not_applied).sort(), [
      'kv_budget_fraction',
      'prefill_decode_split',
      'priority_routing',
      'quantization_tier',
      'speculation_depth',
    ]);
    assert.deepEqual(report.not_observed.toSorted(), [
      'estimated_cost_per_1k',
      'eviction_events',
      'gpu_memory_used_gb',
      'kv_cache_occupancy',
      'spec_acceptance_rate',
    ]);
    for (const figure of report.not_observed) assert.equal(observation[figure], 0);
    assert.deepEqual([report.quality, report.cost_usd], [null, null]);
    assert.equal(report.reward_components.memory, -0);
  });

  it('keeps to the batch cap, and sends priorities where they are understood', async () => {
    server.behaviour = 'slow';
    const capped = { ...DEFAULT_ACTION, batch_cap: 1, priority_routing: true };
    const { report, observation } = await play({ provider: 'vllm' }, capped);
    assert.equal(server.mostOpen, 1);
    assert.ok(observation.queue_depth > 0 && observation.active_requests === 1);
    assert.equal(report.applied.priority_routing, 'request');
    for (const body of server.bodies) {
      assert.deepEqual([body.ignore_eos, body.min_tokens, body.priority], [true, body.max_tokens, 0]);
    }
  });

  it('counts the cost by the prices it is told', async () => {
    const { observation, report } = await play({ inputUsdPerMillion: 10, outputUsdPerMillion: 100 });
    assert.ok(Math.abs(report.cost_usd! - (66 * 10 + 30 * 100) / 1e6) < 1e-12);
    assert.ok(Math.abs(observation.estimated_cost_per_1k - (report.cost_usd! / 30) * 1000) < 1e-12);
    assert.equal(report.not_observed.includes('estimated_cost_per_1k'), false);
  });

  it('tries again when the server is busy, and counts it', async () => {
    server.behaviour = 'busy';
    const { report } = await play();
    assert.deepEqual([report.requests.completed, report.requests.retries], [6, 12]);
  });

  const failing: readonly (readonly [Behaviour, string])[] = [
    ['broken', 'http_500'],
    ['cut', 'broken_stream'],
    ['short', 'broken_stream'],
    ['garbage', 'broken_stream'],
    ['hanging', 'timeout'],
    ['silent', 'timeout'],
  ];
  for (const [behaviour, outcome] of failing) {
    it(`observes a server that is ${behaviour} as it is`, async () => {
      server.behaviour = behaviour;
      const timeoutSeconds = outcome === 'timeout' ? 0.3 : 30;
      const { observation, report } = await play({ timeoutSeconds, maxRequestsPerStep: 3, retries: 1 });
      assert.equal(report.requests.completed, 0);
      assert.deepEqual(report.requests.failed, { [outcome]: 3 });
      assert.deepEqual(Object.keys(report.requests.errors), [outcome]);
      assert.equal(observation.slo_compliance_rate, 0);
      assert.equal(report.classes[0].slo_compliance, 0);
      assert.ok(report.reward_components.slo === 0 && report.reward_components.throughput < 0.2);
    });
  }

  it('is a typed error when nobody answers or all is refused, and the window can be played again', async () => {
    const environment = realEnvironment(settings({ model: 'x', retries: 0 })).create();
    await environment.reset({ task_id: 'static_workload', seed: 1 });
    server.behaviour = 'unauthorized';
    await assert.rejects(async () => environment.step(DEFAULT_ACTION), {
      code: 'REAL_SERVER_REFUSED',
      message: `${server.baseUrl}/chat/completions answered 401: "Incorrect API key provided: ***". Set OPENAI_API_KEY to a key that this server accepts. All 6 requests of the window failed, so that it counts as not played: step again`,
    });
    server.behaviour = 'correct';
    const { observation } = await environment.step(DEFAULT_ACTION);
    assert.equal(observation.step_index, 1);

    const gone = await startMisbehavingServer();
    await gone.close();
    const dead = realEnvironment(settings({ baseUrl: gone.baseUrl, retries: 0 })).create();
    const noServer = {
      code: 'REAL_SERVER_UNREACHABLE',
      message: /ECONNREFUSED.*Start the server, or correct/,
    };
    await assert.rejects(async () => dead.reset({}), noServer);
    const named = realEnvironment(settings({ baseUrl: gone.baseUrl, retries: 0, model: 'x' })).create();
    await assert.rejects(async () => named.reset({}), noServer);
    const fresh = realEnvironment(settings()).create();
    await assert.rejects(async () => fresh.step(DEFAULT_ACTION), { code: 'NOT_RESET' });
  });

  it('leaves no request running when its session is closed', async () => {
    const environment = realEnvironment(settings({ model: 'x', timeoutSeconds: 60 })).create();
    await environment.reset({ task_id: 'static_workload', seed: 1 });
    server.behaviour = 'silent';
    const step = assert.rejects(async () => environment.step(DEFAULT_ACTION), { code: 'REAL_CLOSED' });
    while (server.open < 3) await new Promise(setImmediate);
    await environment.close?.();
    await step;
    while (server.open > 0) await new Promise(setImmediate);
  });

  it('plays against `transformers serve`: without the fields that it refuses, which it hears of once', async () => {
    server.behaviour = 'transformers';
    const { report } = await play({ provider: 'vllm', model: '/models/tiny' });
    assert.deepEqual(report.requests, { ...report.requests, sent: 6, completed: 6, failed: {}, retries: 0 });
    assert.deepEqual(report.tokens, { prompt: 36, completion: 30 });
    const sentence = "Unexpected fields in the request: {'ignore_eos', 'min_tokens', 'priority'}";
    assert.deepEqual(report.refused_fields, {
      ignore_eos: sentence,
      min_tokens: sentence,
      priority: sentence,
    });
    assert.equal(server.bodies.length, 6, 'no window pays for the refusal');
    for (const body of server.bodies) {
      assert.deepEqual(Object.keys(body).sort(), [
        'max_tokens',
        'messages',
        'model',
        'stream',
        'stream_options',
      ]);
    }
  });

  it('sends a request again as long as it gets shorter', async () => {
    server.behaviour = 'picky';
    const { report } = await play({ provider: 'vllm' });
    assert.equal(report.requests.completed, 6);
    assert.deepEqual(report.refused_fields, {
      ignore_eos: 'body.ignore_eos: Extra inputs are not permitted',
      min_tokens: 'body.min_tokens: Extra inputs are not permitted',
      priority: 'body.priority: Extra inputs are not permitted',
      stream_options: 'body.stream_options: Extra inputs are not permitted',
    });
    server.behaviour = 'reasoning';
    const { report: other } = await play();
    assert.equal(other.requests.completed, 6);
    assert.ok(server.bodies.every((body) => body.max_completion_tokens === 5 && !('max_tokens' in body)));
  });

  it('does not ask for priorities that the server refuses', async () => {
    server.behaviour = 'picky';
    const { report } = await play({ provider: 'vllm' }, { ...DEFAULT_ACTION, priority_routing: true });
    assert.equal(report.applied.priority_routing, undefined);
    assert.match(report.not_applied.priority_routing!, /body\.priority: Extra inputs/);
  });

  it('counts tokens without text, as vLLM streams special tokens', async () => {
    server.behaviour = 'vllm';
    const { report } = await play({ provider: 'vllm', model: 'tiny' });
    assert.deepEqual([report.requests.completed, report.tokens.completion], [6, 30]);
    assert.deepEqual(report.refused_fields, {});
  });

  const refusals: readonly (readonly [Behaviour, Partial<RealSettings>, RegExp])[] = [
    ['unauthorized', {}, /answered 401: "Incorrect API key provided: \*\*\*"\. Set OPENAI_API_KEY/],
    [
      'vllm',
      { model: 'nope' },
      /answered 404: "The model `nope` does not exist\. Valid aliases: tiny"\. Set LLMSERVE_REAL_MODEL/,
    ],
    [
      'transformers',
      { model: 'nope' },
      /answered 400: "Server is pinned to '\/models\/tiny'; requested 'nope'"\. Set LLMSERVE_REAL_MODEL/,
    ],
  ];
  for (const [behaviour, changes, message] of refusals) {
    it(`says at the reset what a server that is ${behaviour} refuses`, async () => {
      server.behaviour = behaviour;
      const environment = realEnvironment(settings({ model: 'x', ...changes })).create();
      await assert.rejects(async () => environment.reset({}), { code: 'REAL_SERVER_REFUSED', message });
    });
  }

  it('passes on why the models cannot be listed', async () => {
    server.behaviour = 'transformers';
    const environment = realEnvironment(settings({ retries: 0 })).create();
    await assert.rejects(async () => environment.reset({}), {
      code: 'REAL_SERVER_UNREACHABLE',
      message: /\/models answered 500: "Internal Server Error"\. .*LLMSERVE_REAL_MODEL names a model/,
    });
  });

  it('is not repeatable and says so', () => {
    const { replayable, grade, id } = realEnvironment(settings());
    assert.deepEqual([replayable, grade, id], [false, undefined, 'llmserve']);
  });
});

describe('the settings of real mode', () => {
  it('come from the environment, with budgets that cost little', () => {
    assert.equal(readRealSettings({}), null);
    assert.equal(readRealSettings({ LLMSERVE_MODE: 'sim', LLMSERVE_REAL_RETRIES: 'many' }), null);
    assert.deepEqual(readRealSettings({ LLMSERVE_MODE: 'real', OPENAI_API_KEY: 'k' }), {
      provider: 'openai',
      baseUrl: 'https://api.openai.com/v1',
      apiKey: 'k',
      model: 'gpt-4.1-mini',
      maxRequestsPerStep: 8,
      maxPromptTokens: 512,
      maxCompletionTokens: 64,
      timeoutSeconds: 60,
      retries: 2,
      timeScale: 1,
      inputUsdPerMillion: null,
      outputUsdPerMillion: null,
    });
    const own = readRealSettings({
      LLMSERVE_MODE: 'real',
      LLMSERVE_REAL_PROVIDER: 'servegym',
      LLMSERVE_REAL_BASE_URL: 'http://localhost:8000/v1/',
      LLMSERVE_REAL_MODEL: 'mine',
      LLMSERVE_REAL_MAX_REQUESTS_PER_STEP: '100',
    });
    assert.deepEqual(
      [own!.baseUrl, own!.model, own!.maxRequestsPerStep, own!.apiKey],
      ['http://localhost:8000/v1', 'mine', 100, 'none'],
    );
  });

  it('that make no sense are named', () => {
    const refused = (variables: Record<string, string>, message: RegExp) =>
      assert.throws(() => readRealSettings({ LLMSERVE_MODE: 'real', OPENAI_API_KEY: 'k', ...variables }), {
        code: 'REAL_SETTINGS',
        message,
      });
    refused({ LLMSERVE_MODE: 'reel' }, /LLMSERVE_MODE .*`sim` or `real`, got `reel`/);
    refused({ OPENAI_API_KEY: '' }, /OPENAI_API_KEY/);
    refused({ LLMSERVE_REAL_BASE_URL: 'http://me:pw@host/v1' }, /^(?!.*pw@).*without user and password/);
    refused({ LLMSERVE_REAL_PROVIDER: 'azure' }, /LLMSERVE_REAL_PROVIDER .*openai, vllm, servegym/);
    refused({ LLMSERVE_REAL_PROVIDER: 'vllm' }, /LLMSERVE_REAL_BASE_URL/);
    refused({ LLMSERVE_REAL_BASE_URL: 'localhost:8000' }, /LLMSERVE_REAL_BASE_URL/);
    for (const url of ['http://me:secret@gpu:8000/v1', 'http://gpu:8000/v1?key=secret', 'me:secret@gpu']) {
      assert.throws(
        () => readRealSettings({ LLMSERVE_MODE: 'real', LLMSERVE_REAL_BASE_URL: url }),
        ({ code, message }) =>
          code === 'REAL_SETTINGS' && /OPENAI_API_KEY/.test(message) && !/secret/.test(message),
      );
    }
    refused({ LLMSERVE_REAL_MAX_REQUESTS_PER_STEP: '2.5' }, /MAX_REQUESTS_PER_STEP .*whole number/);
    refused({ LLMSERVE_REAL_MAX_PROMPT_TOKENS: '0' }, /MAX_PROMPT_TOKENS .*from 1/);
    refused({ LLMSERVE_REAL_TIME_SCALE: 'fast' }, /TIME_SCALE .*got `fast`/);
  });
});
