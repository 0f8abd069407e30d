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
