import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { startServer } from '../src/server/start-server.ts';

/** 400 requests, two a second. */
const TRACE = [
  'arrival_s,input_tokens,output_tokens',
  ...Array.from({ length: 400 }, (_, i) => `${i / 2},${100 + (i % 7) * 50},${20 + (i % 5) * 10}`),
].join('\n');
const REQUEST = { trace: TRACE, model: 'Llama-3-8B', gpus: ['L40S-48GB'] };

const server = await startServer({ environments: ['llmserve', 'benchmark'], work: { threads: 2 } });
after(() => server.close());

function send(body: string, signal?: AbortSignal): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return fetch(`${server.url}/plans`, { method: 'POST', headers, body, signal });
}

const post = (body: object, signal?: AbortSignal) => send(JSON.stringify(body), signal);

async function idle(): Promise<void> {
  while (server.longRequests > 0) await new Promise(setImmediate);
}

describe('a plan over HTTP', () => {
  it('answers with the plans of each profile as they are found, then with the result', async () => {
    const { models } = (await (await fetch(`${server.url}/plans/models`)).json()) as {
      models: { name: string; gpus: string[] }[];
    };
    assert.ok(models.find(({ name }) => name === REQUEST.model)?.gpus.includes('L40S-48GB'));
    const answer = await post(REQUEST);
    assert.equal(answer.headers.get('content-type'), 'application/x-ndjson');
    const lines = (await answer.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const { result, sections } = lines.at(-1);
    const table = sections.find(({ table }: { table?: object }) => table !== undefined).table;
    assert.deepEqual([table.label, table.rows.length], ['Table of plans', result.plans.length]);
    assert.equal(result.requests, 400);
    assert.ok(result.plans.length > 0);
    const found = lines.flatMap(({ plans = [] }) => plans);
    const keys = (plans: { profile: string; usd_per_hour: number }[]) =>
      plans.map(({ profile, usd_per_hour }) => `${profile} ${usd_per_hour}`).sort();
    assert.deepEqual(keys(found), keys([...result.plans, ...result.riskier]));
    const states = lines.flatMap(({ search = [] }) => search);
    assert.ok(states.some(({ simulations, rate }) => simulations > 0 && rate > 0));
    assert.deepEqual(Object.keys(states[0]).sort(), [
      ...['best', 'correlation', 'rate', 'share', 'simulations', 'stage'],
    ]);
    const steps = lines.filter(({ of }) => of !== undefined);
    assert.deepEqual(steps.at(-1), { done: steps.length, of: steps.length });
    await idle();
  });

  it('is made one at a time, and ends when its client leaves', async () => {
    const leave = new AbortController();
    const first = await post(REQUEST, leave.signal);
    assert.equal(first.status, 200);
    const second = await post(REQUEST);
    assert.deepEqual(
      [second.status, ((await second.json()) as { code: string }).code],
      [429, 'WORK_QUEUE_FULL'],
    );
    assert.equal((await send('{"trace": no JSON')).status, 429, 'the body is not read before');
    leave.abort();
    await idle();
  });

  it('reads the trace when it is admitted, on a thread: others are answered meanwhile', async () => {
    let isAnswered = false;
    const answer = post({ ...REQUEST, trace: 'a,b\n1,2\n' }).finally(() => {
      isAnswered = true;
    });
    let answeredMeanwhile = 0;
    while (!isAnswered) {
      await fetch(`${server.url}/health`);
      if (server.longRequests > 0) answeredMeanwhile += 1;
    }
    assert.equal((await answer).status, 422);
    assert.ok(answeredMeanwhile > 0);
  });

  for (const [what, body, code] of [
    ['an unknown model', { ...REQUEST, model: 'nope' }, 'UNKNOWN_MODEL'],
    ['an unknown GPU', { ...REQUEST, gpus: ['nope'] }, 'UNKNOWN_MODEL'],
    ['an SLO that is none', { ...REQUEST, slo: 'fast' }, 'INVALID_SLO'],
    ['too few requests', { ...REQUEST, trace: TRACE.split('\n', 11).join('\n') }, 'TOO_FEW_REQUESTS'],
    ['a trace without columns', { ...REQUEST, trace: 'a,b\n1,2\n' }, /^TRACE_/],
  ] as const) {
    it(`refuses ${what}, and is free for the next`, async () => {
      const answer = await post(body);
      const problem = (await answer.json()) as { code: string; detail: string };
      assert.equal(answer.status, 422);
      assert.match(problem.code, new RegExp(code));
      assert.match(problem.detail, /[Ee]xpected/);
      assert.equal(server.longRequests, 0);
    });
  }

  it('is offered at the root only', async () => {
    assert.equal((await fetch(`${server.url}/benchmark/plans/models`)).status, 404);
    assert.equal((await fetch(`${server.url}/plan`, { redirect: 'manual' })).status, 307);
    assert.equal((await fetch(`${server.url}/plan/`)).status, 200);
  });
});
