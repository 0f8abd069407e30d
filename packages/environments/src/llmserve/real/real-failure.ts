import { maskUrls } from '@servegym/openenv/mask-urls';

/** A request that a real server did not answer to the end. */
export interface RealFailure {
  /**
   * `http_429` and the like, `connection`, `timeout`, `broken_stream` (it ended early or was no stream), `no_text`
   * (it ended without a token of text), `aborted` (the session was closed).
   */
  readonly outcome: string;
  /** HTTP status; `null` when there was none. */
  readonly status: number | null;
  /** The server's own sentence, or the network's. */
  readonly sentence: string;
}

const LONGEST_SENTENCE = 500;
/** Shorter ones are placeholders, and may be words of the sentence. */
const SHORTEST_KEY = 8;

/** The sentence in the body of an error: OpenAI's, FastAPI's and TGI's forms, else the text. */
export function serverSentence(body: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    parsed = body;
  }
  const sentence = sentenceIn(parsed) ?? body;
  return sentence.replace(/\s+/g, ' ').trim().slice(0, LONGEST_SENTENCE);
}

/** The same for a value that has been parsed; `undefined` when it holds no sentence. */
function sentenceIn(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) {
    const sentences = value.map(sentenceIn).filter((sentence) => sentence !== undefined);
    return sentences.length === 0 ? undefined : sentences.join('; ');
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { error, detail, message, msg, loc } = value as Record<string, unknown>;
  // One entry of FastAPI's list of fields that do not fit.
  if (typeof msg === 'string') return Array.isArray(loc) ? `${loc.join('.')}: ${msg}` : msg;
  return sentenceIn(error) ?? sentenceIn(detail) ?? sentenceIn(message);
}

/** Failure of a `fetch` that got no answer. */
export function connectionFailure(error: unknown): RealFailure {
  let cause = error as Error & { readonly code?: string };
  while (cause.code === undefined && cause.cause instanceof Error) cause = cause.cause;
  return { outcome: 'connection', status: null, sentence: cause.message || cause.code || cause.name };
}

/** True when neither a retry nor another action helps: key, model or fields of the requests are wrong. */
export function isRefusal({ status }: RealFailure): boolean {
  return status !== null && status >= 400 && status < 500 && ![408, 409, 429].includes(status);
}

/**
 * One text for a failure: address, status, sentence and advice that fits them.
 * @param apiKey taken out of the server's sentence
 */
export function describeFailure(failure: RealFailure, url: string, apiKey: string): string {
  const { outcome, status, sentence } = failure;
  const masked = apiKey.length < SHORTEST_KEY ? sentence : sentence.replaceAll(apiKey, '***');
  const said = masked.replace(/[.\s]+$/, '');
  const event = status === null ? (EVENTS[outcome] ?? 'failed') : `answered ${status}`;
  return maskUrls(`${url} ${event}${said === '' ? '' : `: "${said}"`}. ${advice(failure)}`);
}

const EVENTS: Readonly<Record<string, string>> = {
  connection: 'could not be reached',
  timeout: 'timed out',
};

function advice({ outcome, status, sentence }: RealFailure): string {
  if (status === 401 || status === 403) return 'Set OPENAI_API_KEY to a key that this server accepts';
  if (
    status === 404 ||
    (isRequestError(status) && /\bmodel\b|pinned/i.test(sentence) && !isTooLong(sentence))
  )
    return 'Set LLMSERVE_REAL_MODEL to a model of this server, or correct LLMSERVE_REAL_BASE_URL (it usually ends in /v1)';
  if (isRequestError(status) && isTooLong(sentence))
    return 'Set LLMSERVE_REAL_MAX_PROMPT_TOKENS and LLMSERVE_REAL_MAX_COMPLETION_TOKENS so that both fit the model';
  if (isRequestError(status))
    return 'The server does not accept a field of the request: set LLMSERVE_REAL_PROVIDER=openai, which sends only fields of the OpenAI API, or change the setting that the server names';
  if (status === 402 || status === 429)
    return 'Wait, raise the limit of the account, or lower LLMSERVE_REAL_MAX_REQUESTS_PER_STEP';
  if (outcome === 'connection') return 'Start the server, or correct LLMSERVE_REAL_BASE_URL';
  if (outcome === 'timeout') return 'Raise LLMSERVE_REAL_TIMEOUT_S, or look at the server';
  return "Look at the server's log";
}

function isRequestError(status: number | null): boolean {
  return status === 400 || status === 422;
}

function isTooLong(sentence: string): boolean {
  return /max_model_len|context length|maximum context|max_(completion_)?tokens/i.test(sentence);
}
