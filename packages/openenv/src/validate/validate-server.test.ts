import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it, test } from 'node:test';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import { z } from 'zod';
import { guess } from '../../examples/guess/environment.ts';
import { connect } from '../client/connect.ts';
import { startPython, startServer } from '../fixtures/start-server.ts';
import { defineEnvironment, EnvironmentError } from '../protocol/definition.ts';
import { createServer } from '../server/create-server.ts';
import type { ListeningServer } from '../server/listen.ts';
import { type ValidationReport, validateServer } from './validate-server.ts';

const MAX_SESSIONS = 3;

/** Adds up what it is given. */
const adder = defineEnvironment({
  ...{ id: 'adder', version: '1', name: 'Adder', description: 'Adds up.' },
  action: z.strictObject({ amount: z.int().min(1).max(9) }).meta({ title: 'AddAction' }),
  observation: z.object({ total: z.int() }),
  state: z.object({ total: z.int() }),
  resetOptions: z.object({ task_id: z.literal('add').optional() }),
  tasks: [{ id: 'add', name: 'Add', difficulty: 'easy', description: 'Add.', default_action: { amount: 1 } }],
  grade: () => ({ score: 0.5, breakdown: {}, feedback: '' }),
  create() {
    let total = 0;
    const result = (reward: number | null) => ({ observation: { total }, reward, done: total >= 100 });
    return {
      reset({ seed = 0 }) {
        total = seed % 10;
        return result(null);
      },
      step({ amount }) {
        total += amount;
        return result(amount / 10);
      },
      state: () => ({ total }),
    };
  },
});

function validate(url: string, options: { timeoutMs?: number; mostSessions?: number } = {}) {
  return validateServer(url, { timeoutMs: 5000, mostSessions: 8, ...options });
}

function findingOf(report: ValidationReport, id: string) {
  return report.criteria.find((criterion) => criterion.id === id)!;
}

describe('validateServer', () => {
  let server: ListeningServer;
  before(async () => {
    server = await createServer(adder, { maxSessions: MAX_SESSIONS }).listen({ port: 0, host: '127.0.0.1' });
  });
  after(() => server.close());

  /** The report on a server with these flaws. */
  async function flawsFound(flaws: Flaws, timeoutMs?: number): Promise<ValidationReport> {
    const flawed = await startFlawedServer(server.url, flaws);
    try {
      return await validate(flawed.url, timeoutMs === undefined ? {} : { timeoutMs });
    } finally {
      await flawed.close();
    }
  }

  it('finds nothing wrong with our server, and nothing that does not apply', async () => {
    const report = await validate(server.url);
    assert.deepEqual(report.summary.failed_criteria, []);
    assert.deepEqual(report.summary.not_applicable, []);
    assert.equal(report.passed, true);
    assert.equal(report.summary.passed_count, report.criteria.length);
    assert.deepEqual([report.mode, report.standard_profile], ['simulation', 'openenv-http/1.x']);
    assert.equal(findingOf(report, 'capacity_refusal').details, '3 of 3 sessions');
    assert.equal(new Set(report.criteria.map(({ id }) => id)).size, report.criteria.length);
  });

  it('finds nothing wrong with the server that stands before it when that has no flaw', async () => {
    const report = await flawsFound({});
    assert.deepEqual(report.summary.failed_criteria, []);
  });

  it('judges a production server by what it has', async (t) => {
    const production = await createServer(adder, { mode: 'production' }).listen({
      port: 0,
      host: '127.0.0.1',
    });
    t.after(() => production.close());
    const report = await validate(production.url);
    assert.equal(report.passed, true);
    assert.equal(report.mode, 'production');
    assert.ok(report.summary.not_applicable.includes('http_stateful'));
  });

  it('finds nothing that clients rely on wrong with the server of OpenEnv', async (t) => {
    const { url, process } = await startPython('reference_server.py', 'simulation');
    t.after(() => process.kill('SIGKILL'));
    const report = await validate(url);
    assert.equal(report.passed, true, JSON.stringify(report.summary));
    assert.equal(report.summary.required_total_count, report.summary.required_passed_count);
  });

  it('does not hold it against a server that some actions take long', async (t) => {
    const slow: typeof adder = {
      ...adder,
      create() {
        const quick = adder.create();
        return {
          reset: (options) => quick.reset(options),
          step: (action) => (action.amount > 5 ? new Promise<never>(() => {}) : quick.step(action)),
          state: () => quick.state(),
        };
      },
    };
    const listening = await createServer(slow).listen({ port: 0, host: '127.0.0.1' });
    t.after(() => listening.close());
    const report = await validate(listening.url, { timeoutMs: 1000 });
    assert.deepEqual(report.summary.failed_criteria, []);
    assert.match(findingOf(report, 'action_schema').details ?? '', /takes longer than 1 s/);
  });

  const observation = (change: (data: Record<string, unknown>) => Record<string, unknown>): Flaws => ({
    toClient: (message) =>
      message.type === 'observation' ? { ...message, data: change(message.data) } : message,
  });
  const cases: [string, string, Flaws, RegExp?][] = [
    [
      'a reward that is a boolean',
      'reward_well_formed',
      observation((data) => ({ ...data, reward: data.reward === null ? null : true })),
      /after step 1: expected a number, got true/,
    ],
    [
      'no done',
      'observation_message',
      observation(({ done, ...data }) => data),
      /after the reset: expected done/,
    ],
    [
      'an observation that its schema does not allow',
      'observation_schema',
      observation((data) => ({ ...data, observation: { total: 'many' } })),
      /after the reset: \/total must be integer/,
    ],
    [
      'an episode that is never the same',
      'seed_determinism',
      observation((data) => ({ ...data, observation: { total: Math.floor(1e9 * Math.random()) } })),
      /reply\[0\]\.observation\.total is \d+ and \d+/,
    ],
    [
      'a seed that is ignored',
      'seed_control',
      {
        toServer: (message) =>
          message.type === 'reset' ? { type: 'reset', data: { ...message.data, seed: 1 } } : message,
      },
      /the seeds 7, 8, 9, 10 gave the same episode/,
    ],
    [
      'a schema that promises more than is taken',
      'action_schema',
      {
        toServer: (message) =>
          message.type === 'step' && message.data?.amount > 5
            ? { type: 'step', data: { amount: 'too much' } }
            : message,
      },
      /expected a message of type `observation` in reply to `step`/,
    ],
    [
      'a label of the episode that is lost',
      'state_contract',
      { toServer: (message) => (message.data?.episode_id ? { type: 'reset', data: {} } : message) },
      /after the reset: expected the episode_id "servegym-validate"/,
    ],
    [
      'state fields of the wrong type',
      'state_schema',
      {
        toClient: (message) =>
          message.type === 'state' ? { ...message, data: { ...message.data, total: '1' } } : message,
      },
    ],
    [
      'a key of an action that is dropped in silence',
      'unknown_action_key_refused',
      {
        toServer: (message) =>
          message.type === 'step' && message.data
            ? { type: 'step', data: { amount: message.data.amount } }
            : message,
      },
    ],
    [
      'a wrong value that is put right in silence',
      'wrong_action_value_refused',
      {
        toServer: (message) =>
          message.type === 'step' && typeof message.data?.amount !== 'number' && message.data
            ? { type: 'step', data: { amount: 1 } }
            : message,
      },
    ],
    [
      'an error without its code',
      'unknown_type_refused',
      {
        toClient: (message) =>
          message.data?.code === 'UNKNOWN_TYPE'
            ? { type: 'error', data: { message: 'no', code: 'ERROR' } }
            : message,
      },
    ],
    [
      'two messages for one error',
      'paired_after_errors',
      { repeats: (message) => message.data?.code === 'INVALID_JSON' },
    ],
    ['a close with the wrong code', 'close_message', { closeCode: 1011 }],
    [
      'HTTP that forgets',
      'http_stateful',
      {
        answer: (path, body) =>
          path.startsWith('/state') ? { ...body, episode_id: null, step_count: 0 } : body,
      },
    ],
    [
      'no action schema',
      'schema_endpoint',
      { answer: (path, body) => (path === '/schema' ? { ...body, action: null } : body) },
    ],
    [
      'a list of tools that names none',
      'mcp_tools_list',
      {
        answer: (path, body) => (path === '/mcp' && body.result?.tools ? { result: { tools: [{}] } } : body),
      },
    ],
  ];
  for (const [flaw, id, flaws, details] of cases) {
    it(`finds ${flaw}`, async () => {
      const report = await flawsFound(flaws);
      assert.ok(report.summary.failed_criteria.includes(id), report.summary.failed_criteria.join());
      if (details) assert.match(findingOf(report, id).details ?? '', details);
      assert.equal(report.passed, !findingOf(report, id).required);
    });
  }

  let shared = 0;
  const flawed = (change: (sound: ReturnType<typeof adder.create>) => object): typeof adder => ({
    ...adder,
    create() {
      const sound = adder.create();
      return { ...sound, ...change(sound) };
    },
  });
  const environments: Record<string, readonly [typeof adder, RegExp]> = {
    episode_end: [
      flawed((sound) => ({
        step: async (action: { amount: number }) => ({ ...(await sound.step(action)), done: false }),
      })),
      /^expected `done` within 10000 steps/,
    ],
    grades_inside: [
      { ...adder, grade: () => ({ score: 1, breakdown: {}, feedback: '' }) },
      /^task "add": expected a score inside \(0, 1\), got 200/,
    ],
    tasks_playable: [
      flawed((sound) => ({
        reset(options: Parameters<typeof sound.reset>[0]) {
          if (options.task_id) throw new EnvironmentError('BROKEN', 'out of order');
          return sound.reset(options);
        },
      })),
      /^task "add": .*out of order/,
    ],
    session_isolation: [
      flawed((sound) => ({
        reset(options: Parameters<typeof sound.reset>[0]) {
          shared++;
          return sound.reset(options);
        },
        state: () => ({ total: shared }),
      })),
      /^playing one session changes another: state\.total is/,
    ],
  };
  for (const [id, [environment, details]] of Object.entries(environments)) {
    it(`finds an environment that fails ${id}`, async (t) => {
      const listening = await createServer(environment).listen({ port: 0, host: '127.0.0.1' });
      t.after(() => listening.close());
      const report = await validate(listening.url);
      assert.ok(report.summary.failed_criteria.includes(id), JSON.stringify(report.criteria));
      assert.match(findingOf(report, id).details ?? '', details);
      assert.equal(report.passed, !findingOf(report, id).required);
    });
  }

  it('finds sessions that are not given back', async () => {
    const report = await flawsFound({ keepsLostSessions: true }, 1000);
    assert.ok(report.summary.failed_criteria.includes('sessions_released'));
    assert.equal(report.passed, false);
  });

  it('does not wait for a server that answers no steps, nor judge what it could not play', async () => {
    const silent: Flaws = { toServer: (message) => (message.type === 'step' ? undefined : message) };
    const report = await flawsFound(silent, 1000);
    assert.equal(findingOf(report, 'websocket_session').passed, false);
    assert.match(findingOf(report, 'websocket_session').details ?? '', /did not answer within 1 s/);
    assert.equal(findingOf(report, 'reward_well_formed').passed, null);
    assert.equal(report.passed, false);
  });

  it('says that nobody is there', async () => {
    const report = await validate('http://127.0.0.1:9');
    assert.equal(report.passed, false);
    assert.match(findingOf(report, 'health_endpoint').details ?? '', /GET \/health was not answered/);
    assert.equal(findingOf(report, 'healthy_afterwards').passed, null);
    assert.equal(report.standard_profile, 'openenv-http/unknown');
  });
});

const docs = readFileSync(new URL('../../../../docs/your-own-environment.md', import.meta.url), 'utf8');

test('data: the files of the tutorial are those that it shows', () => {
  for (const file of ['environment.ts', 'serve.ts', 'play.ts']) {
    const text = readFileSync(new URL(`../../examples/guess/${file}`, import.meta.url), 'utf8');
    assert.ok(docs.includes(`## ${file}\n\n\`\`\`ts [${file}]\n${text}\`\`\``), file);
  }
});

test('the environment of the tutorial can be played, and passes what is required', async (t) => {
  const { url } = await startServer(t, guess);
  const client = await connect<typeof guess>(url);
  t.after(() => client.close());
  assert.equal((await client.reset({ seed: 41 })).observation.hint, 'start');
  assert.equal((await client.step({ number: 50 })).observation.hint, 'lower');
  assert.deepEqual(await client.step({ number: 42 }), {
    observation: { hint: 'found' },
    reward: 1,
    done: true,
  });
  const report = await validateServer(url);
  assert.equal(report.passed, true, JSON.stringify(report.criteria, null, 2));
});

/** A message on its way, parsed where it is JSON. */
// biome-ignore lint/suspicious/noExplicitAny: the tests change whatever they like in it
type PassingMessage = any;

/** Defects of a server. */
export interface Flaws {
  /** Changes what the client sends, before the server sees it; `undefined` swallows it. */
  readonly toServer?: (message: PassingMessage) => PassingMessage | undefined;
  /** Changes what the server sends; `undefined` swallows it. */
  readonly toClient?: (message: PassingMessage) => PassingMessage | undefined;
  /** True for messages of the server that the client gets twice. */
  readonly repeats?: (message: PassingMessage) => boolean;
  /** Changes the body of an HTTP answer. */
  readonly answer?: (path: string, body: PassingMessage) => PassingMessage;
  /** Closes the sockets of clients with this code instead of the server's own. */
  readonly closeCode?: number;
  /** Does not notice when a client goes away. */
  readonly keepsLostSessions?: boolean;
}

/** Stands before a good server and makes it a bad one. */
export async function startFlawedServer(
  url: string,
  flaws: Flaws,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const http = createHttpServer(async (request, response) => {
    const body = await text(request);
    const { host, connection, 'content-length': length, ...headers } = request.headers;
    const answer = await fetch(url + request.url, {
      method: request.method ?? 'GET',
      headers: headers as Record<string, string>,
      ...(body !== '' && { body }),
    });
    const type = answer.headers.get('content-type') ?? '';
    const answered = await answer.text();
    const change = flaws.answer && type.startsWith('application/json');
    response.writeHead(answer.status, { 'content-type': type });
    response.end(change ? JSON.stringify(flaws.answer(request.url ?? '', JSON.parse(answered))) : answered);
  });
  const clients = new WebSocketServer({ server: http });
  const upstreams = new Set<WebSocket>();
  clients.on('connection', (client, request) => {
    const upstream = new WebSocket(`${url.replace('http', 'ws')}${request.url}`);
    upstreams.add(upstream);
    const opened = once(upstream, 'open');
    client.on('message', async (data, isBinary) => {
      const message = changed(flaws.toServer, data, isBinary);
      await opened;
      if (message !== undefined) upstream.send(message, { binary: isBinary });
    });
    upstream.on('message', (data, isBinary) => {
      const message = changed(flaws.toClient, data, isBinary);
      if (message === undefined) return;
      client.send(message);
      if (flaws.repeats?.(parsed(message))) client.send(message);
    });
    upstream.on('close', (code) => client.close(flaws.closeCode ?? code));
    client.on('close', () => {
      if (!flaws.keepsLostSessions) upstream.close();
    });
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    async close() {
      for (const socket of [...clients.clients, ...upstreams]) socket.terminate();
      http.close();
      http.closeAllConnections();
      await once(http, 'close');
    },
  };
}

/** The message that is passed on; bytes are passed on unchanged. */
function changed(change: Flaws['toClient'], data: RawData, isBinary: boolean): string | Buffer | undefined {
  const original = data as Buffer;
  if (!change || isBinary) return isBinary ? original : original.toString();
  const message = change(parsed(original.toString()));
  return typeof message === 'object' ? JSON.stringify(message) : message;
}

function parsed(message: string | Buffer): PassingMessage {
  try {
    return JSON.parse(message.toString());
  } catch {
    return message;
  }
}

async function text(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request) body += chunk;
  return body;
}
