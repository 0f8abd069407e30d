import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Fields } from '../api/wire.ts';
import { firstFrame, nextFrame, readTelemetry } from '../state/frame.ts';
import { capacityOf, narrateFleet, wastedUsdPerHour } from './fleet-report.ts';

const OBSERVATION = {
  interactive: { arrivals_per_second: 8 },
  batch: { arrivals_per_second: 2 },
  arrived_prompt_tokens_per_second: 4000,
  prefix_cache_hit_rate: 0.5,
  request_generation_tokens_mean: 100,
  replicas_ready: 2,
  usd_per_hour: 30,
  server: {
    ...{ step_base_ms: 10, step_token_us: 100, step_sequence_us: 50, step_context_ns: 100 },
    kv_cache_tokens: 100_000,
  },
};
const METADATA = {
  classes: [{ name: 'interactive' }, { name: 'batch' }],
  replicas: [{ state: 'ready' }, { state: 'ready' }, { state: 'starting' }],
};

function frameOf(observation: Fields, action: Fields = {}) {
  const first = firstFrame({ observation, metadata: METADATA, reward: null, done: false });
  const settings = { max_num_active_seqs: 64, max_num_batched_tokens: 8192, ...action };
  return nextFrame(first, { action: settings, observation, metadata: METADATA, reward: 0, done: false });
}

function near(actual: number | null | undefined, expected: number): void {
  assert.ok(Math.abs((actual ?? Number.NaN) - expected) < 0.01, `${actual}, expected ${expected}`);
}

describe('the capacity of the ready replicas', () => {
  it('is full batches over the time that they take', () => {
    // 64 sequences: 100 iterations of 10 + 64 x (0.05 + 450 x 0.0001) ms, and 64 x 200 prompt tokens of 0.1 ms.
    near(capacityOf(frameOf(OBSERVATION)), (2 * 64_000) / (1608 + 1280));
  });

  it('is less where the token budget or the KV pool allows smaller batches', () => {
    // A budget of 96 tokens: 32 sequences and the 2 prompt tokens of each that an iteration computes.
    near(capacityOf(frameOf(OBSERVATION, { max_num_batched_tokens: 96 })), (2 * 32_000) / (1304 + 640));
    const server = { ...OBSERVATION.server, kv_cache_tokens: 16_000 };
    near(capacityOf(frameOf({ ...OBSERVATION, server })), (2 * 32_000) / (1304 + 640));
  });

  it('counts replicas of the second kind by their own speed', () => {
    const server = { ...OBSERVATION.server, second: { ...OBSERVATION.server, kv_cache_tokens: 16_000 } };
    const mixed = frameOf({ ...OBSERVATION, server, second_replicas_ready: 1 });
    near(capacityOf(mixed), 64_000 / 2888 + 32_000 / 1944);
  });

  it('is not known before the first window, without requests, or of an unknown server', () => {
    const first = firstFrame({ observation: OBSERVATION, metadata: METADATA, reward: null, done: false });
    assert.equal(capacityOf(first), null);
    const quiet = { ...OBSERVATION, interactive: {}, batch: {} };
    assert.equal(capacityOf(frameOf(quiet)), null);
    assert.equal(capacityOf(frameOf({ ...OBSERVATION, server: undefined })), undefined);
  });
});

describe('dollars wasted', () => {
  const wasted = (observation: Fields) => wastedUsdPerHour(frameOf(observation));

  it('are those of replicas that do not serve, and of capacity beyond the demand', () => {
    near(wasted(OBSERVATION), 10 + 20 * (1 - 10 / ((2 * 64_000) / 2888)));
  });

  it('are the whole bill without requests, and that of what starts where demand is above capacity', () => {
    near(wasted({ ...OBSERVATION, interactive: {}, batch: {} }), 30);
    near(wasted({ ...OBSERVATION, interactive: { arrivals_per_second: 400 } }), 10);
  });
});

const READY = {
  id: 0,
  state: 'ready',
  role: 'mixed',
  running: 8,
  waiting: 0,
  kv_blocks_used: 500,
  kv_blocks_total: 1000,
};
const IN_TIME = { name: 'interactive', completed: 100, attained: 100, refused: 0 };

interface Window {
  readonly observation?: Record<string, unknown>;
  readonly metadata?: Record<string, unknown>;
  readonly done?: boolean;
}

function headline({ observation = {}, metadata = {}, done = false }: Window): string | undefined {
  const first = firstFrame({ observation: {}, metadata: {}, reward: null, done: false });
  const frame = nextFrame(first, {
    action: {},
    observation: { num_requests_waiting: 0, queue_seconds: 0, ...observation },
    metadata: { replicas: [READY], classes: [IN_TIME], ...metadata },
    reward: 0,
    done,
  });
  return narrateFleet(frame)?.headline;
}

describe('narrateFleet', () => {
  const queue = { num_requests_waiting: 90, queue_seconds: 12 };
  const starting = { ...READY, id: 1, state: 'starting', ready_in_s: 41.2 };
  const late = { ...IN_TIME, attained: 60 };
  const cases: readonly [string, Window][] = [
    ['Keeping up.', {}],
    ['A replica failed.', { metadata: { events: [{ kind: 'failed', at_s: 3, replica: 0 }] } }],
    ['No replica serves.', { metadata: { replicas: [starting] } }],
    ['Too few replicas.', { observation: queue }],
    ['Waiting for replicas.', { observation: queue, metadata: { replicas: [READY, starting] } }],
    ['Refusing work.', { metadata: { classes: [IN_TIME, { ...IN_TIME, name: 'best_effort', refused: 4 }] } }],
    ['Late answers.', { metadata: { classes: [late] } }],
    ['Capacity to spare.', { metadata: { replicas: [0, 1].map((id) => ({ ...READY, id, running: 2 })) } }],
  ];
  for (const [expected, window] of cases) {
    it(`says: ${expected}`, () => assert.equal(headline(window), expected));
  }

  it('says nothing at the end, which the page tells of', () => {
    assert.equal(headline({ done: true }), undefined);
  });
});

describe('the telemetry of a fleet', () => {
  it('marks the replicas that failed in the window', () => {
    const { replicas = [] } = readTelemetry({
      replicas: [READY, { ...READY, id: 1 }],
      events: [{ kind: 'failed', at_s: 3, replica: 1 }],
    });
    assert.deepEqual(
      replicas.map(({ hasFailed }) => hasFailed),
      [false, true],
    );
  });

  it('has no replicas where the server tells of none', () => {
    assert.equal(readTelemetry({ classes: [], gpus: [] }).replicas, undefined);
  });

  it('reads replicas of any shape', () => {
    const { replicas = [] } = readTelemetry({
      replicas: [{ state: 5, running: 'x' }, null, { ...READY, kv_blocks_used: 250 }],
    });
    assert.deepEqual(
      replicas.map(({ state, running, kvUse }) => [state, running, kvUse]),
      [
        ['ready', 0, 0],
        ['ready', 0, 0],
        ['ready', 8, 0.25],
      ],
    );
  });
});
