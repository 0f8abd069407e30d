import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Answer of the server to a completion. */
export type Behaviour =
  | 'correct'
  /** Correct, after 20 ms. */
  | 'slow'
  /** 429 twice, then correct. */
  | 'busy'
  | 'broken'
  | 'unauthorized'
  /** Sends the first token and then nothing. */
  | 'hanging'
  /** Ends the connection in the middle of the stream. */
  | 'cut'
  /** Ends the stream without a reason and without `[DONE]`. */
  | 'short'
  | 'garbage'
  /** Never answers. */
  | 'silent'
  /** As `transformers serve` 5.19: bodies and streams recorded from it. Its list of models fails without a cache. */
  | 'transformers'
  /** As vLLM 0.32 that serves `tiny`: bodies and streams recorded from it. */
  | 'vllm'
  /** As OpenAI's reasoning models, which take no `max_tokens`. */
  | 'reasoning'
  /** Refuses another optional field with each request, as a chain of proxies may. */
  | 'picky';

/** A server of the OpenAI API that misbehaves on request. */
export interface MisbehavingServer {
  /** With `/v1`. */
  readonly baseUrl: string;
  /** Bodies of the completions that were asked for. */
  readonly bodies: Record<string, unknown>[];
  /** Requests that have not been answered to the end. */
  readonly open: number;
  /** Most requests that were open at once since it was last set. */
  mostOpen: number;
  behaviour: Behaviour;
  close(): Promise<void>;
}

const TOKENS = 5;

export async function startMisbehavingServer(): Promise<MisbehavingServer> {
  const refused = new Map<unknown, number>();
  const state = {
    ...{ baseUrl: '', open: 0, mostOpen: 0, behaviour: 'correct' as Behaviour },
    bodies: [] as Record<string, unknown>[],
  };

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === '/v1/models' && state.behaviour === 'transformers') {
      response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' }).end('Internal Server Error');
      return;
    }
    if (request.url === '/v1/models') {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ object: 'list', data: [{ id: 'first', object: 'model' }] }));
      return;
    }
    if (request.url !== '/v1/chat/completions') {
      response.writeHead(404).end();
      return;
    }
    state.open++;
    state.mostOpen = Math.max(state.mostOpen, state.open);
    response.on('close', () => state.open--);
    let text = '';
    for await (const piece of request) text += piece;
    const body = JSON.parse(text);
    state.bodies.push(body);
    const refuse = (status: number, answer: object) =>
      response
        .writeHead(status, { 'content-type': 'application/json', 'retry-after-ms': '1' })
        .end(JSON.stringify(answer));
    const error = (
      status: number,
      message = 'no',
      type = 'x',
      param: string | null = null,
      code: unknown = 'x',
    ) => void refuse(status, { error: { message, type, param, code } });
    const start = () => response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (choice: object | null, usage?: object) =>
      response.write(`data: ${JSON.stringify({ id: 'c', choices: choice ? [choice] : [], usage })}\n\n`);
    const token = (finish_reason: string | null = null) =>
      send({ index: 0, delta: { content: ' tok' }, finish_reason });
    const correct = () => {
      start();
      for (let i = 1; i < TOKENS; i++) token();
      token('length');
      send(null, { prompt_tokens: 11, completion_tokens: TOKENS, total_tokens: 11 + TOKENS });
      response.end('data: [DONE]\n\n');
    };
    const prompt = body.messages[0].content;
    switch (state.behaviour) {
      case 'correct':
        return correct();
      case 'slow':
        return void setTimeout(correct, 20);
      case 'busy': {
        const times = refused.get(prompt) ?? 0;
        refused.set(prompt, times + 1);
        return times < 2 ? error(429) : correct();
      }
      case 'broken':
        return error(500);
      case 'unauthorized':
        return error(401, `Incorrect API key provided: ${request.headers.authorization?.slice(7)}.`);
      case 'transformers': {
        const unknown = ['ignore_eos', 'min_tokens', 'priority'].filter((name) => name in body);
        if (unknown.length > 0) {
          const set = unknown.map((name) => `'${name}'`).join(', ');
          return void refuse(422, { detail: `Unexpected fields in the request: {${set}}` });
        }
        if (body.model !== '/models/tiny') {
          return void refuse(400, {
            detail: `Server is pinned to '/models/tiny'; requested '${body.model}'.`,
          });
        }
        start();
        send({ index: 0, delta: { role: 'assistant' } });
        // It ignores `max_completion_tokens`.
        const limit = body.max_tokens ?? 1024;
        for (let i = 0; i < limit; i++) send({ index: 0, delta: { content: 'lock' } });
        send(
          { index: 0, delta: {}, finish_reason: 'length' },
          { completion_tokens: limit, prompt_tokens: 6, total_tokens: limit + 6 },
        );
        return void response.end();
      }
      case 'vllm': {
        if (body.model !== 'tiny') {
          const message = `The model \`${body.model}\` does not exist. Valid aliases: tiny.`;
          return error(404, message, 'NotFoundError', 'model', 404);
        }
        if (body.max_tokens > 4096) {
          const message = `max_tokens=${body.max_tokens} cannot be greater than max_model_len=4096. Please request fewer output tokens. (parameter=max_tokens, value=${body.max_tokens})`;
          return error(400, message, 'BadRequestError', 'max_tokens', 400);
        }
        start();
        send({ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null });
        // Special tokens have no text.
        for (let i = 1; i <= body.max_tokens; i++) {
          const finish_reason = i === body.max_tokens ? 'length' : null;
          send({ index: 0, delta: { content: '' }, finish_reason });
        }
        send(null, {
          prompt_tokens: 4,
          total_tokens: 4 + body.max_tokens,
          completion_tokens: body.max_tokens,
        });
        return void response.end('data: [DONE]\n\n');
      }
      case 'reasoning':
        if ('max_tokens' in body) {
          const message =
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
          return error(400, message, 'invalid_request_error', 'max_tokens', 'unsupported_parameter');
        }
        return correct();
      case 'picky': {
        const name = ['ignore_eos', 'min_tokens', 'priority', 'stream_options'].find(
          (field) => field in body,
        );
        if (name === undefined) return correct();
        return void refuse(422, {
          detail: [{ type: 'extra_forbidden', loc: ['body', name], msg: 'Extra inputs are not permitted' }],
        });
      }
      case 'hanging':
        start();
        return void token();
      case 'cut':
        start();
        token();
        setImmediate(() => response.destroy());
        return;
      case 'short':
        start();
        token();
        return void response.end();
      case 'garbage':
        start();
        return void response.end('data: {"choices": [\n\n');
      case 'silent':
        return;
    }
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  state.baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return Object.assign(state, {
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  });
}
