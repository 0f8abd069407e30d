import { maskUrls } from '@servegym/openenv/mask-urls';
import { RandomStream } from '@servegym/simulator';
import type OpenAI from 'openai';
import { openAiClient } from '../../load-optional.ts';
import { OPENAI_URL, type RealSettings } from './real-settings.ts';

interface RealRequest {
  readonly prompt: string;
  /** Tokens to generate; a server that cannot be told to ignore its end of text may stop before. */
  readonly outputTokens: number;
  /** 0 is the most urgent; `null` sends none. */
  readonly priority: number | null;
}

/** Result of a request. Wall times, ms. */
export type RealAnswer = Readonly<Awaited<ReturnType<RealClient['complete']>>>;

/** Fields that the OpenAI API does not require; requests do without those that a server refuses. */
const OPTIONAL_FIELDS = ['ignore_eos', 'min_tokens', 'priority', 'stream_options'] as const;
type OptionalField = (typeof OPTIONAL_FIELDS)[number];

/** Longest wait for the list of models, ms. */
const LISTING_MS = 10_000;

/** Asks a real server over the OpenAI API, and measures. */
export class RealClient {
  readonly #settings: RealSettings;
  readonly #client: OpenAI;
  readonly #refusedFields = new Map<OptionalField, string>();
  /** Name of the field that limits the output. */
  #limitField: 'max_tokens' | 'max_completion_tokens';

  private constructor(settings: RealSettings, client: OpenAI) {
    this.#settings = settings;
    this.#client = client;
    // OpenAI refuses the old name for its reasoning models; `transformers serve` ignores the new one.
    this.#limitField = settings.baseUrl === OPENAI_URL ? 'max_completion_tokens' : 'max_tokens';
  }

  /** Fields that the server refused, each with its sentence; they are no longer sent. */
  get refusedFields(): ReadonlyMap<OptionalField, string> {
    return this.#refusedFields;
  }

  static async create(settings: RealSettings): Promise<RealClient> {
    const client = await openAiClient(settings, 'Real mode asks servers with', 'REAL_CLIENT_MISSING');
    return new RealClient(settings, client as OpenAI);
  }

  /** Ids of the models that the server lists, or the failure to list them. */
  async models(signal: AbortSignal): Promise<readonly string[] | RealFailure> {
    const attempts = new Attempts();
    try {
      const page = await this.#client
        .withOptions({ fetch: attempts.fetch })
        .models.list({ signal, timeout: LISTING_MS });
      return page.data.map(({ id }) => id);
    } catch (error) {
      return attempts.failure(error);
    }
  }

  /** Text for a failure of `complete`, or of `models`: address, status, the server's sentence and advice. */
  describe(failure: RealFailure, path: '/chat/completions' | '/models' = '/chat/completions'): string {
    return describeFailure(failure, this.#settings.baseUrl + path, this.#settings.apiKey);
  }

  /**
   * Sends a request and reads its stream to the end. A request with fields that the server refuses is sent again
   * without them. Never throws: what goes wrong is in `failure`.
   */
  async complete(request: RealRequest, model: string, signal: AbortSignal) {
    for (;;) {
      const fields = this.#fields(request);
      const answer = await this.#send(fields, request, model, signal);
      if (answer.failure === null || !this.#dropRefused(fields, answer.failure)) return answer;
    }
  }

  /** Fields beside the model, the messages and `stream`. */
  #fields({ outputTokens, priority }: RealRequest): Record<string, unknown> {
    const fields: Record<string, unknown> = {
      [this.#limitField]: outputTokens,
      stream_options: { include_usage: true },
    };
    if (this.#settings.provider !== 'openai') {
      Object.assign(fields, { ignore_eos: true, min_tokens: outputTokens });
      if (priority !== null) fields.priority = priority;
    }
    for (const name of this.#refusedFields.keys()) delete fields[name];
    return fields;
  }

  /** Notes the fields that a refusal names. Answers whether the next attempt sends less than this one did. */
  #dropRefused(sent: Record<string, unknown>, { status, sentence }: RealFailure): boolean {
    if (status !== 400 && status !== 422) return false;
    if ('max_tokens' in sent && /unsupported.*max_completion_tokens/i.test(sentence)) {
      this.#limitField = 'max_completion_tokens';
      return true;
    }
    const named = OPTIONAL_FIELDS.filter(
      (name) => name in sent && new RegExp(`\\b${name}\\b`).test(sentence),
    );
    for (const name of named) this.#refusedFields.set(name, sentence);
    return named.length > 0;
  }

  async #send(fields: Record<string, unknown>, { prompt }: RealRequest, model: string, signal: AbortSignal) {
    const { timeoutSeconds } = this.#settings;
    const timeout = AbortSignal.timeout(timeoutSeconds * 1000);
    const attempts = new Attempts();
    const gapsMs: number[] = [];
    let firstMs: number | null = null;
    let lastMs = 0;
    let usage = { prompt_tokens: 0, completion_tokens: 0 };
    let finishReason: string | null = null;
    const startMs = performance.now();
    let failure: RealFailure | null = null;
    try {
      const stream = await this.#client
        .withOptions({ fetch: attempts.fetch })
        .chat.completions.create(
          { model, messages: [{ role: 'user', content: prompt }], stream: true, ...fields },
          { signal: AbortSignal.any([signal, timeout]) },
        );
      for await (const chunk of stream) {
        if (chunk.usage) usage = chunk.usage;
        const [choice] = chunk.choices;
        if (choice?.finish_reason) finishReason = choice.finish_reason;
        if (!isToken(choice?.delta)) continue;
        const nowMs = performance.now();
        if (firstMs === null) firstMs = nowMs;
        else gapsMs.push(nowMs - lastMs);
        lastMs = nowMs;
      }
      if (finishReason === null)
        failure = failed('broken_stream', 'The stream ended without a finish_reason');
      else if (firstMs === null) {
        const sentence = `The answer ended (${finishReason}) after ${usage.completion_tokens} tokens, none of which is text`;
        failure = failed('no_text', sentence);
      }
    } catch (error) {
      failure = attempts.failure(error);
    }
    // The client ends the iteration quietly when the stream is aborted.
    if (signal.aborted) failure = failed('aborted');
    else if (timeout.aborted) failure = failed('timeout', `No end of the answer within ${timeoutSeconds} s`);
    const pieces = firstMs === null ? 0 : gapsMs.length + 1;
    return {
      /** `null` when the request completed. */
      failure,
      /** From the first attempt to the first token; `null` when none came. */
      ttftMs: firstMs === null ? null : firstMs - startMs,
      /** From the first token to the last. */
      decodeMs: firstMs === null ? 0 : lastMs - firstMs,
      /** Between the pieces of the stream. */
      gapsMs,
      /** As the server counts them; where it does not, prompt tokens are 0 and each piece is a token. */
      promptTokens: usage.prompt_tokens,
      completionTokens: Math.max(usage.completion_tokens, pieces),
      retries: Math.max(0, attempts.count - 1),
    };
  }
}

/** Counts the attempts of a request, and keeps the body of the last error: the client drops those it does not know. */
class Attempts {
  count = 0;
  #refusal: RealFailure | null = null;

  readonly fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    this.count++;
    this.#refusal = null;
    const answer = await fetch(url, init);
    if (!answer.ok) this.#refusal = await httpFailure(answer.clone());
    return answer;
  };

  failure(error: unknown): RealFailure {
    if (this.#refusal !== null) return this.#refusal;
    const { message, error: sent } = error as Error & { readonly error?: unknown };
    const { name } = (error as Error).constructor;
    if (name === 'APIConnectionError') return connectionFailure(error);
    if (name === 'APIConnectionTimeoutError') return failed('timeout', message);
    // An error that is an event of the stream, else no stream at all.
    return failed('broken_stream', sent === undefined ? message : serverSentence(JSON.stringify(sent)));
  }
}

/** A failure without an HTTP status. */
export function failed(outcome: string, sentence = ''): RealFailure {
  return { outcome, status: null, sentence };
}

/** The failure of an answer that is not OK. */
export async function httpFailure(answer: Response): Promise<RealFailure> {
  const { status } = answer;
  return { outcome: `http_${status}`, status, sentence: serverSentence(await answer.text()) };
}

/** A piece of a stream's answer, with the fields that servers add for reasoning. */
interface Delta {
  readonly role?: string;
  readonly content?: string | null;
  readonly reasoning?: string | null;
  readonly reasoning_content?: string | null;
}

/** True when a piece carries a token. The text of a token may be empty; the piece that opens an answer has the role and no token. */
function isToken(delta: Delta | undefined): boolean {
  const text = delta?.content ?? delta?.reasoning ?? delta?.reasoning_content;
  return typeof text === 'string' && (text !== '' || delta?.role === undefined);
}

/** Characters of a token, roughly, of the English words below with current tokenizers. */
const CHARACTERS_PER_TOKEN = 4;
const WORDS =
  'time year people way day man thing woman life child world school state family student group country problem hand part place case week company system program question work government number night point home water room mother area money story fact month lot right study book eye job word business issue side kind head house service friend father power hour game line end member law car city community name'.split(
    ' ',
  );

/** A prompt of about `tokens` tokens that no other request of the episode begins with. */
export function promptText(seed: number, request: number, tokens: number): string {
  const draws = new RandomStream(seed, `prompt ${request}`);
  const characters = tokens * CHARACTERS_PER_TOKEN;
  let text = '';
  while (text.length < characters) text += `${WORDS[draws.integer(0, WORDS.length - 1)]} `;
  return text.slice(0, Math.max(1, characters)).trimEnd();
}

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
function serverSentence(body: string): string {
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
  return failed('connection', cause.message || cause.code || cause.name);
}

/** True when neither a retry nor another action helps: key, model or fields of the requests are wrong. */
function isRefusal({ status }: RealFailure): boolean {
  return status !== null && status >= 400 && status < 500 && ![408, 409, 429].includes(status);
}

/** Code of the error that a failure ends the session with; `null` for those that come and go. */
export function failureCode(failure: RealFailure) {
  if (failure.outcome === 'connection') return 'REAL_SERVER_UNREACHABLE';
  return isRefusal(failure) ? 'REAL_SERVER_REFUSED' : null;
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
