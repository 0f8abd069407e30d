import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context } from 'hono';
import type { LiveServer } from '../live/live-server.ts';
import type { GenerationPlanner } from './plan-generation.ts';
import { ApiError } from './requests.ts';

type ServedContext = Context<{ Bindings: HttpBindings }>;
type GenerationPlan = ReturnType<GenerationPlanner['plan']>;

/** Fields common to all chunks of an answer. */
interface AnswerHead {
  readonly id: string;
  /** Unix time, s. */
  readonly created: number;
  readonly model: string;
}

/** Form of the answers of an API: what a choice holds beside its number and the reason of its end. */
export interface AnswerShape {
  /** `cmpl` or `chatcmpl`: what the ids of answers begin with. */
  readonly idPrefix: string;
  /** Kinds of a whole answer, and of a chunk of a stream. */
  readonly object: string;
  readonly chunkObject: string;
  /** First chunk of a choice of a stream, in the same turn as its first token. */
  readonly opening?: object;
  delta(text: string): object;
  whole(text: string): object;
}

export const COMPLETION_SHAPE: AnswerShape = {
  idPrefix: 'cmpl',
  object: 'text_completion',
  chunkObject: 'text_completion',
  delta: (text) => ({ text }),
  whole: (text) => ({ text }),
};

export const CHAT_SHAPE: AnswerShape = {
  idPrefix: 'chatcmpl',
  object: 'chat.completion',
  chunkObject: 'chat.completion.chunk',
  opening: { delta: { role: 'assistant', content: '' } },
  delta: (content) => ({ delta: { content } }),
  whole: (content) => ({ message: { role: 'assistant', content, refusal: null } }),
};

function choiceOf(index: number, content: object, finishReason: 'stop' | 'length' | null): object {
  return { index, ...content, logprobs: null, finish_reason: finishReason };
}

function answerOf(
  { id, created, model }: AnswerHead,
  object: string,
  choices: readonly object[],
  usage: object | undefined,
) {
  return { id, object, created, model, choices, usage };
}

/** Tokens of a request, as the API tells them. */
function usageOf(promptTokens: number, completionTokens: number) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

/** Serves the choices on the live server and answers with what they generate. A client that leaves frees what it held. */
export function generate(
  context: ServedContext,
  live: LiveServer,
  plan: GenerationPlan,
): Response | Promise<Response> {
  if (!plan.stream) return answerWhole(context, live, plan);
  answerStream(context.env.outgoing, live, plan);
  return RESPONSE_ALREADY_SENT;
}

const EVENT_STREAM = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
};

/** Server-sent events, written straight to the socket: each leaves in the turn in which it is sent. */
function answerStream(outgoing: HttpBindings['outgoing'], live: LiveServer, plan: GenerationPlan): void {
  const { head, shape, choices, promptTokens } = plan;
  outgoing.socket?.setNoDelay(true);
  outgoing.writeHead(200, { ...plan.headers, ...EVENT_STREAM });
  outgoing.flushHeaders();
  const send = (...events: readonly object[]) => {
    if (outgoing.destroyed) return;
    outgoing.write(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''));
  };
  let unfinished = choices.length;
  let completionTokens = 0;
  const usage = () => usageOf(promptTokens, completionTokens);
  const finish = () => {
    unfinished--;
    if (unfinished > 0) return;
    if (plan.includeUsage) send(answerOf(head, shape.chunkObject, [], usage()));
    if (!outgoing.destroyed) outgoing.end('data: [DONE]\n\n');
  };
  const giveUps = choices.map(({ request, reply }, index) => {
    let sent = 0;
    return live.submit(request, {
      onTokens(emitted, isLast) {
        completionTokens += emitted - sent;
        const soFar = plan.continuousUsage ? usage() : undefined;
        const chunk = (content: object, reason: 'stop' | 'length' | null) =>
          answerOf(head, shape.chunkObject, [choiceOf(index, content, reason)], soFar);
        const opening = sent === 0 && shape.opening ? [chunk(shape.opening, null)] : [];
        const delta = shape.delta(reply.text(sent, emitted));
        send(...opening, chunk(delta, isLast ? reply.finishReason : null));
        sent = emitted;
        if (isLast) finish();
      },
      onRefused() {
        send(poolTooSmall().body);
        finish();
      },
    });
  });
  outgoing.on('close', () => {
    for (const giveUp of giveUps) giveUp();
  });
}

function answerWhole(
  context: ServedContext,
  live: LiveServer,
  { head, shape, choices, promptTokens, headers }: GenerationPlan,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const whole: object[] = [];
    let unfinished = choices.length;
    let completionTokens = 0;
    const giveUps = choices.map(({ request, reply }, index) =>
      live.submit(request, {
        onTokens(emitted, isLast) {
          if (!isLast) return;
          completionTokens += emitted;
          whole[index] = choiceOf(index, shape.whole(reply.text(0, emitted)), reply.finishReason);
          unfinished--;
          if (unfinished > 0) return;
          const usage = usageOf(promptTokens, completionTokens);
          resolve(context.json(answerOf(head, shape.object, whole, usage), 200, headers));
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
