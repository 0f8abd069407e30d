import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const TOKENS = 5;

/** A completion that was asked for, and the parts of answers to it. */
class Exchange {
  // biome-ignore lint/suspicious/noExplicitAny: bodies are what the client sends
  readonly body: Record<string, any>;
  readonly apiKey: string | undefined;
  readonly response: ServerResponse;
  /** Requests with this prompt under this behaviour, this one included. */
  readonly attempt: number;

  constructor(
    body: Record<string, unknown>,
    request: IncomingMessage,
    response: ServerResponse,
    attempt: number,
  ) {
    this.body = body;
    this.apiKey = request.headers.authorization?.slice(7);
    this.response = response;
    this.attempt = attempt;
  }

  refuse(status: number, answer: object): void {
    this.response
      .writeHead(status, { 'content-type': 'application/json', 'retry-after-ms': '1' })
      .end(JSON.stringify(answer));
  }

  /** Refuses as OpenAI does. */
  error(status: number, message = 'no', type = 'x', param: string | null = null, code: unknown = 'x'): void {
    this.refuse(status, { error: { message, type, param, code } });
  }

  start(): void {
    this.response.writeHead(200, { 'content-type': 'text/event-stream' });
  }

  send(choice: object | null, usage?: object): void {
    this.response.write(`data: ${JSON.stringify({ id: 'c', choices: choice ? [choice] : [], usage })}\n\n`);
  }

  token(finish_reason: string | null = null): void {
    this.send({ index: 0, delta: { content: ' tok' }, finish_reason });
  }

  correct(): void {
    this.start();
    for (let i = 1; i < TOKENS; i++) this.token();
    this.token('length');
    this.send(null, { prompt_tokens: 11, completion_tokens: TOKENS, total_tokens: 11 + TOKENS });
    this.response.end('data: [DONE]\n\n');
  }
}

/** Answers to a completion. */
const ANSWERS = {
  correct: (exchange: Exchange) => exchange.correct(),
  slow: (exchange: Exchange) => void setTimeout(() => exchange.correct(), 20),
  /** 429 twice, then correct. */
  busy: (exchange: Exchange) => (exchange.attempt <= 2 ? exchange.error(429) : exchange.correct()),
  broken: (exchange: Exchange) => exchange.error(500),
  unauthorized: (exchange: Exchange) =>
    exchange.error(401, `Incorrect API key provided: ${exchange.apiKey}.`),
  /** The first token and then nothing. */
  hanging(exchange: Exchange) {
    exchange.start();
    exchange.token();
  },
  /** The connection ends in the middle of the stream. */
  cut(exchange: Exchange) {
    exchange.start();
    exchange.token();
    setImmediate(() => exchange.response.destroy());
  },
  /** The stream ends without a reason and without `[DONE]`. */
  short(exchange: Exchange) {
    exchange.start();
    exchange.token();
    exchange.response.end();
  },
  garbage(exchange: Exchange) {
    exchange.start();
    exchange.response.end('data: {"choices": [\n\n');
  },
  silent() {},
  /** As `transformers serve` 5.19: bodies and streams recorded from it. Its list of models fails without a cache. */
  transformers(exchange: Exchange) {
    const { body, response } = exchange;
    const unknown = ['ignore_eos', 'min_tokens', 'priority'].filter((name) => name in body);
    if (unknown.length > 0) {
      const set = unknown.map((name) => `'${name}'`).join(', ');
      return exchange.refuse(422, { detail: `Unexpected fields in the request: {${set}}` });
    }
    if (body.model !== '/models/tiny') {
      return exchange.refuse(400, {
        detail: `Server is pinned to '/models/tiny'; requested '${body.model}'.`,
      });
    }
    exchange.start();
    exchange.send({ index: 0, delta: { role: 'assistant' } });
    // It ignores `max_completion_tokens`.
    const limit = body.max_tokens ?? 1024;
    for (let i = 0; i < limit; i++) exchange.send({ index: 0, delta: { content: 'lock' } });
    exchange.send(
      { index: 0, delta: {}, finish_reason: 'length' },
      { completion_tokens: limit, prompt_tokens: 6, total_tokens: limit + 6 },
    );
    response.end();
  },
  /** As vLLM 0.32 that serves `tiny`: bodies and streams recorded from it. */
  vllm(exchange: Exchange) {
    const { model, max_tokens: limit } = exchange.body;
    if (model !== 'tiny') {
      const message = `The model \`${model}\` does not exist. Valid aliases: tiny.`;
      return exchange.error(404, message, 'NotFoundError', 'model', 404);
    }
    if (limit > 4096) {
      const message = `max_tokens=${limit} cannot be greater than max_model_len=4096. Please request fewer output tokens. (parameter=max_tokens, value=${limit})`;
      return exchange.error(400, message, 'BadRequestError', 'max_tokens', 400);
    }
    exchange.start();
    exchange.send({ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null });
    // Special tokens have no text.
    for (let i = 1; i <= limit; i++) {
      exchange.send({ index: 0, delta: { content: '' }, finish_reason: i === limit ? 'length' : null });
    }
    exchange.send(null, { prompt_tokens: 4, total_tokens: 4 + limit, completion_tokens: limit });
    exchange.response.end('data: [DONE]\n\n');
  },
  /** As OpenAI's reasoning models, which take no `max_tokens`. */
  reasoning(exchange: Exchange) {
    if (!('max_tokens' in exchange.body)) return exchange.correct();
    const message =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    exchange.error(400, message, 'invalid_request_error', 'max_tokens', 'unsupported_parameter');
  },
  /** Refuses another optional field with each request, as a chain of proxies may. */
  picky(exchange: Exchange) {
    const fields = ['ignore_eos', 'min_tokens', 'priority', 'stream_options'];
    const name = fields.find((field) => field in exchange.body);
    if (name === undefined) return exchange.correct();
    exchange.refuse(422, {
      detail: [{ type: 'extra_forbidden', loc: ['body', name], msg: 'Extra inputs are not permitted' }],
    });
  },
};

export type Behaviour = keyof typeof ANSWERS;

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

export async function startMisbehavingServer(): Promise<MisbehavingServer> {
  const attempts = new Map<string, number>();
  const state = {
    ...{ baseUrl: '', open: 0, mostOpen: 0, behaviour: 'correct' as Behaviour },
    bodies: [] as Record<string, unknown>[],
  };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === '/v1/models') {
      if (state.behaviour === 'transformers') {
        response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' }).end('Internal Server Error');
        return;
      }
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
    const prompt = `${state.behaviour} ${body.messages[0].content}`;
    const attempt = (attempts.get(prompt) ?? 0) + 1;
    attempts.set(prompt, attempt);
    ANSWERS[state.behaviour](new Exchange(body, request, response, attempt));
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
