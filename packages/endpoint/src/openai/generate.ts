import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context } from 'hono';
import type { LiveServer } from '../live/live-server.ts';
import { type GenerationPlanner, RAISE_POOL } from './plan-generation.ts';
import { ApiError } from './requests.ts';

type ServedContext = Context<{ Bindings: HttpBindings }>;
type GenerationPlan = ReturnType<GenerationPlanner['plan']>;

interface AnswerHead {
  readonly id: string;
  /** Unix time, s. */
  readonly created: number;
  readonly model: string;
}

type FinishReason = 'stop' | 'length';

interface Usage {
  readonly prompt: number;
  readonly completion: number;
}

/** A reply, or the next piece of one. */
interface Reply {
  readonly text: string;
  /** `null` while it goes on. */
  readonly finishReason: FinishReason | null;
}

interface AnswerStream {
  piece(index: number, reply: Reply, isFirst: boolean, soFar: Usage | undefined): readonly object[];
  /** Events after the last choice; `isAsked` where the client wants the usage. */
  end(usage: Usage, isAsked: boolean): readonly object[];
}

/** Form of the answers of an API. */
export interface AnswerShape {
  /** Start of the ids of answers, such as `chatcmpl`. */
  readonly idPrefix: string;
  /** Line after the last event of a stream. */
  readonly terminator: string;
  whole(head: AnswerHead, replies: readonly Reply[], usage: Usage): object;
  stream(head: AnswerHead): AnswerStream;
}

/** Answers that are lists of choices, in chunks where they stream. */
function choicesShape(
  idPrefix: string,
  [object, chunkObject]: readonly [string, string],
  [whole, delta]: readonly [(text: string) => object, (text: string) => object],
  opening?: object,
): AnswerShape {
  const choice = (index: number, content: object, finish_reason: FinishReason | null) => ({
    ...{ index, ...content, logprobs: null, finish_reason },
  });
  const usageOf = ({ prompt, completion }: Usage) => ({
    ...{ prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
  });
  const answer = ({ id, created, model }: AnswerHead, kind: string, choices: object[], usage?: Usage) => ({
    ...{ id, object: kind, created, model, choices, usage: usage && usageOf(usage) },
  });
  return {
    idPrefix,
    terminator: 'data: [DONE]\n\n',
    whole(head, replies, usage) {
      const choices = replies.map(({ text, finishReason }, index) =>
        choice(index, whole(text), finishReason),
      );
      return answer(head, object, choices, usage);
    },
    stream: (head) => ({
      piece(index, { text, finishReason }, isFirst, soFar) {
        const chunk = (content: object, reason: FinishReason | null) =>
          answer(head, chunkObject, [choice(index, content, reason)], soFar);
        // In the same turn as the first token.
        return [...(isFirst && opening ? [chunk(opening, null)] : []), chunk(delta(text), finishReason)];
      },
      end: (usage, isAsked) => (isAsked ? [answer(head, chunkObject, [], usage)] : []),
    }),
  };
}

export const COMPLETION_SHAPE = choicesShape(
  'cmpl',
  ['text_completion', 'text_completion'],
  [(text) => ({ text }), (text) => ({ text })],
);

export const CHAT_SHAPE = choicesShape(
  'chatcmpl',
  ['chat.completion', 'chat.completion.chunk'],
  [
    (content) => ({ message: { role: 'assistant', content, refusal: null } }),
    (content) => ({ delta: { content } }),
  ],
  { delta: { role: 'assistant', content: '' } },
);

/** OpenAI's Responses API: one message, whose stream is events with types. */
export const RESPONSES_SHAPE: AnswerShape = {
  idPrefix: 'resp',
  terminator: '',
  whole: (head, [{ text, finishReason }], usage) => responseOf(head, text, finishReason, usage),
  stream(head) {
    let said = '';
    let reason: FinishReason | null = null;
    let sequence_number = 0;
    const at = { item_id: messageId(head), output_index: 0, content_index: 0 };
    const event = (type: string, fields: object) => ({ type, sequence_number: sequence_number++, ...fields });
    const item = () => messageOf(head, said, reason);
    return {
      piece(_, { text, finishReason }, isFirst) {
        const opening = () => [
          event('response.created', { response: responseOf(head) }),
          event('response.in_progress', { response: responseOf(head) }),
          event('response.output_item.added', { output_index: 0, item: { ...item(), content: [] } }),
          event('response.content_part.added', { ...at, part: textPart('') }),
        ];
        const events = isFirst ? opening() : [];
        events.push(event('response.output_text.delta', { ...at, delta: text, logprobs: [] }));
        said += text;
        reason = finishReason;
        if (reason === null) return events;
        return [
          ...events,
          event('response.output_text.done', { ...at, text: said, logprobs: [] }),
          event('response.content_part.done', { ...at, part: textPart(said) }),
          event('response.output_item.done', { output_index: 0, item: item() }),
        ];
      },
      end(usage) {
        const response = responseOf(head, said, reason, usage);
        return [event(`response.${response.status}`, { response })];
      },
    };
  },
};

const textPart = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] });
const messageId = ({ id }: AnswerHead) => id.replace(/^resp/, 'msg');
const statusOf = (reason: FinishReason | null) =>
  reason === null ? 'in_progress' : reason === 'stop' ? 'completed' : 'incomplete';

function messageOf(head: AnswerHead, text: string, reason: FinishReason | null) {
  const content = [textPart(text)];
  return { type: 'message', id: messageId(head), status: statusOf(reason), role: 'assistant', content };
}

function responseOf(head: AnswerHead, text = '', reason: FinishReason | null = null, usage?: Usage) {
  const { id, created: created_at, model } = head;
  return {
    ...{ id, object: 'response', created_at, model, status: statusOf(reason), error: null },
    incomplete_details: reason === 'length' ? { reason: 'max_output_tokens' } : null,
    output: reason === null ? [] : [messageOf(head, text, reason)],
    ...{ instructions: null, metadata: {}, parallel_tool_calls: true, temperature: 1, top_p: 1 },
    ...{ tools: [], tool_choice: 'auto', text: { format: { type: 'text' } } },
    usage: usage && {
      ...{ input_tokens: usage.prompt, input_tokens_details: { cached_tokens: 0 } },
      ...{ output_tokens: usage.completion, output_tokens_details: { reasoning_tokens: 0 } },
      total_tokens: usage.prompt + usage.completion,
    },
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

const EVENT_STREAM = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };

function eventText(event: { readonly type?: string }): string {
  const name = event.type === undefined ? '' : `event: ${event.type}\n`;
  return `${name}data: ${JSON.stringify(event)}\n\n`;
}

/** Server-sent events, written straight to the socket: each leaves in the turn in which it is sent. */
function answerStream(outgoing: HttpBindings['outgoing'], live: LiveServer, plan: GenerationPlan): void {
  const { head, shape, choices, promptTokens } = plan;
  outgoing.socket?.setNoDelay(true);
  outgoing.writeHead(200, { ...plan.headers, ...EVENT_STREAM });
  outgoing.flushHeaders();
  const send = (...events: readonly object[]) => {
    if (outgoing.destroyed) return;
    outgoing.write(events.map(eventText).join(''));
  };
  const answer = shape.stream(head);
  let unfinished = choices.length;
  let completionTokens = 0;
  const usage = (): Usage => ({ prompt: promptTokens, completion: completionTokens });
  const finish = () => {
    unfinished--;
    if (unfinished > 0) return;
    send(...answer.end(usage(), plan.includeUsage));
    if (!outgoing.destroyed) outgoing.end(shape.terminator);
  };
  const giveUps = choices.map(({ request, reply }, index) => {
    let sent = 0;
    return live.submit(request, {
      onTokens(emitted, isLast) {
        completionTokens += emitted - sent;
        const piece = { text: reply.text(sent, emitted), finishReason: isLast ? reply.finishReason : null };
        send(...answer.piece(index, piece, sent === 0, plan.continuousUsage ? usage() : undefined));
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
    const whole: Reply[] = [];
    let unfinished = choices.length;
    let completionTokens = 0;
    const giveUps = choices.map(({ request, reply }, index) =>
      live.submit(request, {
        onTokens(emitted, isLast) {
          if (!isLast) return;
          completionTokens += emitted;
          whole[index] = { text: reply.text(0, emitted), finishReason: reply.finishReason };
          unfinished--;
          if (unfinished > 0) return;
          const usage = { prompt: promptTokens, completion: completionTokens };
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
  const message = `The KV pool has become too small for this request to ever finish. ${RAISE_POOL}`;
  return new ApiError(503, 'kv_pool_exceeded', message);
}
