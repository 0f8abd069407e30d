import { RandomStream, randomBits, streamKey } from '@servegym/simulator';
import { CHARACTERS_PER_TOKEN } from './prompt.ts';

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
function firstStop(
  text: string,
  stop: readonly string[],
  minTokens: number,
): { before: number; after: number } | undefined {
  let first: { before: number; after: number } | undefined;
  for (const wanted of stop) {
    const from = Math.max(0, minTokens * CHARACTERS_PER_TOKEN - wanted.length);
    const before = text.indexOf(wanted, from);
    const after = before + wanted.length;
    if (before >= 0 && (first === undefined || after < first.after)) first = { before, after };
  }
  return first;
}
