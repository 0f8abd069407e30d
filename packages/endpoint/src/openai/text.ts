import { RandomStream, randomBits, streamKey } from '@servegym/simulator';
import { ApiError, type Message } from './requests.ts';

/** Characters of a token: what English text comes to with the tokenizers of current models, roughly. */
const CHARACTERS_PER_TOKEN = 4;

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
 * @param adapter of the request: content under another one has other ids
 */
export function prefixIds(prompt: Prompt, blockTokens: number, adapter = 0): number[] {
  const isText = typeof prompt === 'string';
  const unitsPerBlock = isText ? blockTokens * CHARACTERS_PER_TOKEN : blockTokens;
  const ids: number[] = [];
  // Two lanes of multiplicative hashing, of which 53 bits are kept. Token ids and texts never meet.
  let low = isText ? 1 : 2;
  let high = 3 + adapter;
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
      const expected = `Expected the parts of \`messages[${index}].content\` to be text, got \`${type}\`.`;
      const message = `${expected} The simulated model reads nothing else.`;
      throw new ApiError(400, 'unsupported_content', message, 'messages');
    })
    .join('');
}

/** The words of a reply; each makes a token with the space before it, so that replies count as many as they have. */
const WORDS = (
  'the and for are but not you all any can had her was one our out day get has him his how man new now old see two ' +
  'way who boy did its let put say she too use air arm art bad bed big box car cup dry ear eat end eye far few fly'
).split(' ');

/** End of a reply, and its reason. */
export interface ReplyPlan {
  readonly tokens: number;
  readonly finishReason: 'stop' | 'length';
  /** The text that tokens `from` .. `to` - 1 add. */
  text(from: number, to: number): string;
}

export interface ReplyLimits {
  /** Most tokens. */
  readonly maxTokens: number;
  readonly minTokens: number;
  /** Whether it goes on to `maxTokens`, whatever the model would have to say. */
  readonly ignoreEos: boolean;
  /** Texts at whose first occurrence it ends; they are not part of it. */
  readonly stop: readonly string[];
}

/** Median and standard deviation of the logarithm of the replies' lengths, tokens: those of `llmserve`'s chat. */
const NATURAL_LENGTH = { median: 180, sigma: 0.7 };

/**
 * A reply of words without meaning: a pure function of the seed and the limits. It ends by itself after a log-normal
 * number of tokens, unless `ignoreEos`.
 */
export function planReply(seed: number, limits: ReplyLimits): ReplyPlan {
  const { maxTokens, minTokens, ignoreEos, stop } = limits;
  const key = streamKey(seed, 'reply');
  const drawn = new RandomStream(seed, 'reply length').lognormal(
    Math.log(NATURAL_LENGTH.median),
    NATURAL_LENGTH.sigma,
  );
  const natural = ignoreEos ? Number.POSITIVE_INFINITY : Math.max(minTokens, Math.round(drawn), 1);
  const tokens = Math.min(natural, maxTokens);
  const words = (from: number, to: number) => {
    let text = '';
    for (let i = from; i < to; i++) text += ` ${WORDS[(randomBits(key, i, 0) >>> 0) % WORDS.length]}`;
    return text;
  };
  const end = stop.length === 0 ? undefined : firstStop(words(0, tokens), stop, minTokens);
  if (end !== undefined) {
    return {
      tokens: Math.ceil(end.after / CHARACTERS_PER_TOKEN),
      finishReason: 'stop',
      text: (from, to) => words(from, to).slice(0, Math.max(0, end.before - from * CHARACTERS_PER_TOKEN)),
    };
  }
  return { tokens, finishReason: natural <= maxTokens ? 'stop' : 'length', text: words };
}

/** Begin and end of the stop text that is complete first, not before `minTokens` tokens. */
function firstStop(text: string, stop: readonly string[], minTokens: number) {
  let first: { before: number; after: number } | undefined;
  for (const wanted of stop) {
    const from = Math.max(0, minTokens * CHARACTERS_PER_TOKEN - wanted.length);
    const before = text.indexOf(wanted, from);
    const after = before + wanted.length;
    if (before >= 0 && (first === undefined || after < first.after)) first = { before, after };
  }
  return first;
}
