import type { ServerResponse } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context } from 'hono';
import type { LiveRequest, LiveServer } from '../live/live-server.ts';
import { ApiError } from './requests.ts';
import type { ReplyPlan } from './text.ts';

/** One of the sequences that a request asks for. */
export interface PlannedChoice {
  readonly request: LiveRequest;
  readonly reply: ReplyPlan;
}

export interface GenerationPlan {
  readonly head: AnswerHead;
  readonly shape: AnswerShape;
  readonly choices: readonly PlannedChoice[];
  /** Tokens of the prompts, each counted once. */
  readonly promptTokens: number;
  readonly stream: boolean;
  /** Whether a stream ends with its usage. */
  readonly includeUsage: boolean;
  /** Whether every chunk carries the usage so far. */
  readonly continuousUsage: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/** Serves the choices on the live server and answers with what they generate. A client that leaves frees what it held. */
export function generate(
  context: Context<{ Bindings: HttpBindings }>,
  live: LiveServer,
  plan: GenerationPlan,
): Response | Promise<Response> {
  const { outgoing } = context.env;
  if (!plan.stream) return answerWhole(context, live, plan);
  answerStream(outgoing, live, plan);
  return RESPONSE_ALREADY_SENT;
}

function answerStream(outgoing: ServerResponse, live: LiveServer, plan: GenerationPlan): void {
  const { head, shape, choices, promptTokens } = plan;
  const stream = new EventStream(outgoing, plan.headers);
  let unfinished = choices.length;
  let completionTokens = 0;
  const usage = (): Usage => usageOf(promptTokens, completionTokens);
  const finish = () => {
    unfinished--;
    if (unfinished > 0) return;
    if (plan.includeUsage) stream.send(shape.usage(head, usage()));
    stream.end();
  };
  const giveUps = choices.map(({ request, reply }, index) => {
    let sent = 0;
    return live.submit(request, {
      onTokens(emitted, isLast) {
        completionTokens += emitted - sent;
        const soFar = plan.continuousUsage ? usage() : undefined;
        const opening = sent === 0 ? shape.opening(head, index, soFar) : null;
        const text = reply.text(sent, emitted);
        const delta = shape.delta(head, index, text, isLast ? reply.finishReason : null, soFar);
        if (opening === null) stream.send(delta);
        else stream.send(opening, delta);
        sent = emitted;
        if (isLast) finish();
      },
      onRefused() {
        stream.send(JSON.stringify(poolTooSmall().body));
        finish();
      },
    });
  });
  outgoing.on('close', () => {
    for (const giveUp of giveUps) giveUp();
  });
}

function answerWhole(
  context: Context<{ Bindings: HttpBindings }>,
  live: LiveServer,
  { head, shape, choices, promptTokens, headers }: GenerationPlan,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const whole: WholeChoice[] = [];
    let completionTokens = 0;
    const giveUps = choices.map(({ request, reply }, index) =>
      live.submit(request, {
        onTokens(emitted, isLast) {
          if (!isLast) return;
          completionTokens += emitted;
          whole.push({ index, text: reply.text(0, emitted), finishReason: reply.finishReason });
          if (whole.length < choices.length) return;
          whole.sort((a, b) => a.index - b.index);
          const usage = usageOf(promptTokens, completionTokens);
          resolve(context.json(shape.whole(head, whole, usage), 200, headers));
        },
        onRefused() {
          for (const giveUp of giveUps) giveUp();
          reject(poolTooSmall());
        },
      }),
    );
    context.env.outgoing.on('close', () => {
      for (const giveUp of giveUps) giveUp();
      resolve(RESPONSE_ALREADY_SENT);
    });
  });
}

/** The pool has shrunk under a request that had been taken in. */
function poolTooSmall(): ApiError {
  return new ApiError(
    503,
    'kv_pool_exceeded',
    'The KV pool has become too small for this request to ever finish. Ask for fewer tokens, or raise `kv_budget_fraction` at /admin/knobs.',
  );
}

const EVENT_STREAM = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
};

/** Server-sent events, written straight to the socket: each event leaves in the turn in which it is sent. */
class EventStream {
  readonly #response: ServerResponse;

  /** Sends the headers. @param headers beside those of an event stream */
  constructor(response: ServerResponse, headers: Readonly<Record<string, string>>) {
    this.#response = response;
    response.socket?.setNoDelay(true);
    response.writeHead(200, { ...headers, ...EVENT_STREAM });
    response.flushHeaders();
  }

  /** @param json one event, or several */
  send(...json: readonly string[]): void {
    if (!this.#response.destroyed) this.#response.write(json.map((one) => `data: ${one}\n\n`).join(''));
  }

  /** Sends `[DONE]` and ends. */
  end(): void {
    if (!this.#response.destroyed) this.#response.end('data: [DONE]\n\n');
  }
}

/** Tokens of a request, as the API tells them. */
export function usageOf(promptTokens: number, completionTokens: number) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

export type Usage = ReturnType<typeof usageOf>;

/** Fields common to all chunks of an answer. */
export interface AnswerHead {
  readonly id: string;
  /** Unix time, s. */
  readonly created: number;
  readonly model: string;
}

type FinishReason = 'stop' | 'length';

/** A finished choice. */
export interface WholeChoice {
  readonly index: number;
  readonly text: string;
  readonly finishReason: FinishReason;
}

/** Form of the answers of an API: `text_completion` or `chat.completion`. Each answer is one JSON text. */
export interface AnswerShape {
  /** `cmpl` or `chatcmpl`: what the ids of answers begin with. */
  readonly idPrefix: string;
  /** First chunk of a choice of a stream, in the same turn as its first token; `null` for none. */
  opening(head: AnswerHead, index: number, usage?: Usage): string | null;
  delta(
    head: AnswerHead,
    index: number,
    text: string,
    finishReason: FinishReason | null,
    usage?: Usage,
  ): string;
  /** The last chunk of a stream, when its usage was asked for. */
  usage(head: AnswerHead, usage: Usage): string;
  whole(head: AnswerHead, choices: readonly WholeChoice[], usage: Usage): object;
}

export const COMPLETION_SHAPE: AnswerShape = {
  idPrefix: 'cmpl',
  opening: () => null,
  delta: (head, index, text, finishReason, usage) =>
    chunk(head, 'text_completion', [completionChoice(index, text, finishReason)], usage),
  usage: (head, usage) => chunk(head, 'text_completion', [], usage),
  whole: ({ id, created, model }, choices, usage) => ({
    id,
    object: 'text_completion',
    created,
    model,
    choices: choices.map(({ index, text, finishReason }) => completionChoice(index, text, finishReason)),
    usage,
  }),
};

export const CHAT_SHAPE: AnswerShape = {
  idPrefix: 'chatcmpl',
  opening: (head, index, usage) => {
    const delta = { role: 'assistant', content: '' };
    return chunk(head, 'chat.completion.chunk', [chatDelta(index, delta, null)], usage);
  },
  delta: (head, index, text, finishReason, usage) =>
    chunk(head, 'chat.completion.chunk', [chatDelta(index, { content: text }, finishReason)], usage),
  usage: (head, usage) => chunk(head, 'chat.completion.chunk', [], usage),
  whole: ({ id, created, model }, choices, usage) => ({
    id,
    object: 'chat.completion',
    created,
    model,
    choices: choices.map(({ index, text, finishReason }) => ({
      index,
      message: { role: 'assistant', content: text, refusal: null },
      logprobs: null,
      finish_reason: finishReason,
    })),
    usage,
  }),
};

function completionChoice(index: number, text: string, finishReason: FinishReason | null): object {
  return { index, text, logprobs: null, finish_reason: finishReason };
}

function chatDelta(index: number, delta: object, finishReason: FinishReason | null): object {
  return { index, delta, logprobs: null, finish_reason: finishReason };
}

function chunk(
  { id, created, model }: AnswerHead,
  object: string,
  choices: readonly object[],
  usage: Usage | undefined,
): string {
  return JSON.stringify({ id, object, created, model, choices, usage });
}
