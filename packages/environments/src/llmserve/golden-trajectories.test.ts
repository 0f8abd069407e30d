import assert from 'node:assert/strict';
import { createHash, type Hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { createServer } from '@servegym/openenv';
import { connect } from '@servegym/openenv/client';
import { RandomStream, type Trace } from '@servegym/simulator';
import { addServeTrace } from '../traces.ts';
import { llmserve } from './environment.ts';
import { chooseTask } from './scenario.ts';
import { QUANTIZATION_TIERS, type ServeAction, type ServeObservation, TASK_IDS } from './schema.ts';

/**
 * Rebuilt by running this test with UPDATE_GOLDEN=1. A change of any hash asks for a new `version` of llmserve.definition(). The
 * file holds for every run, process, way of playing and version of Node: `npx --package=node@22 node --test` with this
 * file's path tries another.
 */
const GOLDEN = new URL('./golden-trajectories.json', import.meta.url);

const TRACE: Trace = {
  source: 'golden',
  arrivalMs: Float64Array.from({ length: 400 }, (_, i) => i * 130 + (i % 7) * 11),
  inputTokens: Int32Array.from({ length: 400 }, (_, i) => 40 + ((i * 977) % 3000)),
  outputTokens: Int32Array.from({ length: 400 }, (_, i) => 5 + ((i * 337) % 400)),
};
addServeTrace('golden', TRACE);

type Reset = Parameters<ReturnType<ReturnType<typeof llmserve.definition>['create']>['reset']>[0];

/** Scenarios by name: each task on a seed of each split, and each way to change a task. */
const RESETS: Readonly<Record<string, Reset>> = {
  ...Object.fromEntries(
    TASK_IDS.flatMap((task_id) =>
      [0, 1, 2_000_000].map((seed) => [`${task_id} ${seed}`, { task_id, seed }] as const),
    ),
  ),
  'bursty_workload 3 azure-code-2023': { task_id: 'bursty_workload', seed: 3, traffic: 'azure-code-2023' },
  'static_workload 3 mooncake-conversation x0.1': {
    ...{ task_id: 'static_workload', seed: 3 },
    ...{ traffic: 'mooncake-conversation', rate_scale: 0.1 },
  },
  'adversarial_multitenant 3 named trace': { task_id: 'adversarial_multitenant', seed: 3, trace: 'golden' },
  'static_workload 3 columns': {
    ...{ task_id: 'static_workload', seed: 3 },
    trace: {
      arrival_s: Array.from(TRACE.arrivalMs, (ms) => ms / 1000),
      input_tokens: [...TRACE.inputTokens],
      output_tokens: [...TRACE.outputTokens],
    },
  },
  'static_workload 3 other_gpu': { task_id: 'static_workload', seed: 3, shift: 'other_gpu' },
  'static_workload 3 long_prompts': { task_id: 'static_workload', seed: 3, shift: 'long_prompts' },
};

/** Played over every wire: one of each kind. */
const OVER_THE_WIRE = [
  'static_workload 1',
  'bursty_workload 3 azure-code-2023',
  'adversarial_multitenant 3 named trace',
  'static_workload 3 columns',
  'static_workload 3 other_gpu',
];

/** Turns every knob now and then, the costly ones less often. */
function wanderingActions({ seed = 0, ...reset }: Reset): () => ServeAction {
  const draws = new RandomStream(seed, 'golden');
  let action = chooseTask(reset).defaultAction;
  return () => {
    const next = { ...action };
    if (draws.uniform() < 0.5) next.batch_cap = draws.integer(1, 160);
    if (draws.uniform() < 0.5) next.kv_budget_fraction = 0.1 + draws.integer(0, 90) / 100;
    if (draws.uniform() < 0.3) next.speculation_depth = draws.integer(0, 8);
    if (draws.uniform() < 0.1) next.quantization_tier = QUANTIZATION_TIERS[draws.integer(0, 2)];
    if (draws.uniform() < 0.1) next.prefill_decode_split = !next.prefill_decode_split;
    if (draws.uniform() < 0.3) next.priority_routing = !next.priority_routing;
    action = next;
    return action;
  };
}

interface Answer {
  readonly observation: ServeObservation;
  readonly reward: number | null;
  readonly done: boolean;
}

interface Playable {
  reset(options: Reset): Answer | Promise<Answer>;
  step(action: ServeAction): Answer | Promise<Answer>;
}

async function trajectoryHash(reset: Reset, played: Playable): Promise<string> {
  const nextAction = wanderingActions(reset);
  const hash: Hash = createHash('sha256');
  let { done } = await played.reset(reset);
  while (!done) {
    const answer = await played.step(nextAction());
    done = answer.done;
    hash.update(JSON.stringify([answer.reward, inOrder(answer.observation)]));
  }
  return hash.digest('hex');
}

/** The fields of an observation in the order of the schema, whoever sent them. */
function inOrder(observation: ServeObservation): unknown[] {
  return Object.keys(llmserve.definition().observation.parse(observation)).map(
    (name) => observation[name as keyof ServeObservation],
  );
}

function overHttp(url: string): Playable {
  let session_id: string | undefined;
  const post = async (path: string, body: object) => {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.equal(response.status, 200, await response.clone().text());
    return response.json() as Promise<Answer & { session_id: string }>;
  };
  return {
    async reset(options) {
      const answer = await post('/reset', options);
      session_id = answer.session_id;
      return answer;
    },
    step: (action) => post('/step', { session_id, action }),
  };
}

describe('golden trajectories of llmserve', async () => {
  const trajectories: Record<string, string> = {};
  for (const [name, reset] of Object.entries(RESETS)) {
    trajectories[name] = await trajectoryHash(reset, llmserve.definition().create());
  }
  const current = { version: llmserve.version, trajectories };
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(GOLDEN, `${JSON.stringify(current, null, 2)}\n`);
  const golden = JSON.parse(readFileSync(GOLDEN, 'utf8')) as typeof current;

  it('data: are those of the file, no more and no less', () =>
    assert.deepEqual(Object.keys(golden.trajectories), Object.keys(current.trajectories)));
  for (const [name, hash] of Object.entries(golden.trajectories)) {
    it(`are the same bits as ever (${name})`, () => assert.equal(current.trajectories[name], hash));
  }
  it('data: belong to this version of the environment', () => assert.equal(golden.version, current.version));

  it('are the same over WebSocket and over HTTP', async (t) => {
    const server = createServer(llmserve.definition());
    const { url, close } = await server.listen({ port: 0, host: '127.0.0.1' });
    t.after(close);
    for (const name of OVER_THE_WIRE) {
      const client = await connect<typeof llmserve>(url);
      t.after(() => client.close());
      const { [name]: expected } = golden.trajectories;
      assert.equal(await trajectoryHash(RESETS[name], client as Playable), expected, `WebSocket, ${name}`);
      assert.equal(await trajectoryHash(RESETS[name], overHttp(url)), expected, `HTTP, ${name}`);
    }
  });
});
