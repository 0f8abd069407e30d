import { ApiError } from './api-error.ts';
import type { Message } from './request-schemas.ts';

/** Characters of a token: what English text comes to with the tokenizers of current models, roughly. */
export const CHARACTERS_PER_TOKEN = 4;

/** A prompt as it was given: a text, or the ids of its tokens. */
export type Prompt = string | readonly number[];

/** Tokens of a text: a quarter of its UTF-16 characters, rounded up, and at least one. */
export function textTokens(text: string): number {
  return Math.max(1, Math.ceil(text.length / CHARACTERS_PER_TOKEN));
}

export function promptTokens(prompt: Prompt): number {
  return typeof prompt === 'string' ? textTokens(prompt) : prompt.length;
}

/**
 * Ids of the whole blocks of a prompt, each for the content of its block and of all before it, as vLLM's block hashes
 * are. Two prompts that begin alike share their first ids.
 * @param blockTokens tokens in a KV block
 */
export function prefixIds(prompt: Prompt, blockTokens: number): number[] {
  const isText = typeof prompt === 'string';
  const unitsPerBlock = isText ? blockTokens * CHARACTERS_PER_TOKEN : blockTokens;
  const ids: number[] = [];
  // Two lanes of multiplicative hashing, of which 53 bits are kept. Token ids and texts never meet.
  let low = isText ? 1 : 2;
  let high = 3;
  for (let end = unitsPerBlock; end <= prompt.length; end += unitsPerBlock) {
    for (let i = end - unitsPerBlock; i < end; i++) {
      const unit = isText ? prompt.charCodeAt(i) : prompt[i];
      low = Math.imul(low ^ unit, 0x01000193);
      low ^= low >>> 15;
      high = Math.imul(high ^ unit, 0x5bd1e995);
      high ^= high >>> 13;
    }
    ids.push((high & 0x1f_ffff) * 2 ** 32 + (low >>> 0));
  }
  return ids;
}

/**
 * A conversation as one text: the definitions of the tools, a line `role: content` for each message, and the start of
 * the reply. A conversation that goes on begins with the text of the one before, so that its prefix is found cached.
 * @throws ApiError for content that is not text
 */
export function chatPrompt(messages: readonly Message[], tools: readonly unknown[] = []): string {
  const head = tools.length === 0 ? '' : `${JSON.stringify(tools)}\n`;
  const lines = messages.map(({ role, content }, i) => `${role}: ${textOf(content, i)}\n`);
  return `${head}${lines.join('')}assistant:`;
}

function textOf(content: Message['content'], index: number): string {
  if (content === null || content === undefined) return '';
  if (typeof content === 'string') return content;
  return content
    .map(({ type, text }) => {
      if (text !== undefined) return text;
      throw new ApiError(
        400,
        'unsupported_content',
        `Expected the parts of \`messages[${index}].content\` to be text, got \`${type}\`. The simulated model reads nothing else.`,
        'messages',
      );
    })
    .join('');
}
