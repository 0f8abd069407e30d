import { openAiClient } from '@servegym/environments';
import { EnvironmentError } from '@servegym/openenv/definition';
import type OpenAI from 'openai';

/** Model and server. */
export interface LlmSettings {
  /** Up to and with `/v1`; any server of the OpenAI Chat Completions API. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly model: string;
  /** Longest wait for an answer, attempts included, s. Default 60. */
  readonly timeoutSeconds?: number;
  /** Attempts after the first, for 408, 409, 429, 5xx and lost connections. Default 3. */
  readonly retries?: number;
  /** Prices of a million tokens, USD. Default: not known, so that no cost is told. */
  readonly inputUsdPerMillion?: number;
  readonly outputUsdPerMillion?: number;
}

const OPENAI_URL = 'https://api.openai.com/v1';
const DEFAULT_MODEL = 'gpt-4.1-mini';

type Variables = Readonly<Record<string, string | undefined>>;

/** True when the variables name a key, or a server. */
export function hasLlmSettings(variables: Variables): boolean {
  return Boolean(variables.OPENAI_API_KEY || variables.OPENAI_BASE_URL || variables.API_BASE_URL);
}

/**
 * Settings from `OPENAI_API_KEY` (or `HF_TOKEN`), `OPENAI_BASE_URL` (or `API_BASE_URL`) and `MODEL_NAME`, where they are
 * not given.
 * @throws EnvironmentError `LLM_SETTINGS` when OpenAI would be asked without a key, or the address is none
 */
export function llmSettings(
  variables: Variables,
  given: { readonly baseUrl?: string; readonly model?: string } = {},
): LlmSettings {
  const baseUrl = given.baseUrl || variables.OPENAI_BASE_URL || variables.API_BASE_URL || OPENAI_URL;
  if (!/^https?:\/\//.test(baseUrl) || !URL.canParse(baseUrl)) {
    throw unfit(
      `Expected the address of the model's API to begin with http:// or https://, got \`${baseUrl}\``,
    );
  }
  const { username, password } = new URL(baseUrl);
  if (username !== '' || password !== '') {
    throw unfit(
      'Expected the address of the model’s API to be without user and password. Put the key into OPENAI_API_KEY',
    );
  }
  const apiKey = variables.OPENAI_API_KEY || variables.HF_TOKEN || '';
  if (apiKey === '' && baseUrl === OPENAI_URL) {
    throw unfit(
      'Expected OPENAI_API_KEY to hold a key of the OpenAI API, and it is not set. Set it, or name another server with OPENAI_BASE_URL',
    );
  }
  return {
    baseUrl: baseUrl.replace(/\/+$/, ''),
    // The client wants one; servers without keys do not look at it.
    apiKey: apiKey === '' ? 'none' : apiKey,
    model: given.model || variables.MODEL_NAME || DEFAULT_MODEL,
  };
}

const unfit = (problem: string) => new EnvironmentError('LLM_SETTINGS', problem);

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

/** Statuses by which servers refuse a format that they do not know. */
const UNKNOWN_FORMAT = new Set([400, 404, 415, 422, 500, 501]);
/** Statuses that neither another attempt nor another format can mend. */
const REFUSED = new Set([401, 403]);
/** Questions in a row without an answer, after which the model is given up. */
const MOST_SILENCES = 3;

/** Asks a model over the Chat Completions API, with the official client. */
export class LlmClient {
  readonly settings: LlmSettings & Required<Pick<LlmSettings, 'retries' | 'timeoutSeconds'>>;
  /** Totals of the requests to a model. */
  readonly usage = {
    /** Requests that were answered, those for a repair included. */
    calls: 0,
    /** Requests that got no answer after all attempts. */
    failedCalls: 0,
    promptTokens: 0,
    completionTokens: 0,
    /** Wall time spent waiting, s. */
    seconds: 0,
    /** Format of the model's answers; `null` before the first. */
    format: null as AnswerFormat | null,
  };
  #client: Promise<OpenAI> | undefined;
  #format = 0;
  #silences = 0;

  constructor(settings: LlmSettings) {
    this.settings = {
      ...settings,
      retries: settings.retries ?? 3,
      timeoutSeconds: settings.timeoutSeconds ?? 60,
    };
  }

  /** USD so far; `null` when no prices are known. */
  get costUsd(): number | null {
    const { inputUsdPerMillion: input, outputUsdPerMillion: output } = this.settings;
    if (input === undefined || output === undefined) return null;
    return (this.usage.promptTokens * input + this.usage.completionTokens * output) / 1e6;
  }

  /**
   * The model's answer; `null` when the server fails or is silent, after all attempts, though it has answered before.
   * @throws EnvironmentError `LLM_REFUSED` when the key, the model or the address is wrong; `LLM_UNREACHABLE` when the very
   *   first question gets no answer, or several in a row
   */
  async ask(messages: readonly ChatMessage[], schema: JsonSchema): Promise<string | null> {
    this.#client ??= this.#connect();
    const client = await this.#client;
    const startMs = performance.now();
    try {
      for (;;) {
        const format = FORMATS[this.#format];
        // The client's own timeout ends with the headers of the answer.
        const signal = AbortSignal.timeout(1000 * this.settings.timeoutSeconds);
        try {
          const answer = await client.chat.completions.create(
            { model: this.settings.model, messages: [...messages], ...ANSWER_FORMATS[format](schema) },
            { signal },
          );
          this.usage.calls++;
          this.#silences = 0;
          this.usage.format = format;
          this.usage.promptTokens += answer.usage?.prompt_tokens ?? 0;
          this.usage.completionTokens += answer.usage?.completion_tokens ?? 0;
          return answerText(answer.choices?.[0]?.message);
        } catch (error) {
          const failure = signal.aborted
            ? new Error(`it took longer than ${this.settings.timeoutSeconds} s`, { cause: error })
            : error;
          if (!this.#stepDown(failure)) return null;
        }
      }
    } finally {
      this.usage.seconds += (performance.now() - startMs) / 1000;
    }
  }

  /** Takes the next format when the server has never answered in this one. Answers whether to ask again. */
  #stepDown(error: unknown): boolean {
    const { status, message } = error as { readonly status?: number; readonly message: string };
    if (status !== undefined && REFUSED.has(status)) throw this.#refused(message);
    const isFirst = this.usage.format === null;
    if (isFirst && status !== undefined && UNKNOWN_FORMAT.has(status)) {
      if (this.#format + 1 < FORMATS.length) {
        this.#format++;
        return true;
      }
      if (status < 500) throw this.#refused(message);
    }
    this.usage.failedCalls++;
    this.#silences++;
    if (isFirst || this.#silences >= MOST_SILENCES) {
      const { baseUrl, model } = this.settings;
      const silences = isFirst ? 1 : this.#silences;
      const times = silences > 1 ? ` to ${silences} questions in a row` : '';
      throw new EnvironmentError(
        'LLM_UNREACHABLE',
        `${baseUrl} gave no answer of \`${model}\`${times}: ${message}`,
      );
    }
    return false;
  }

  #refused(problem: string): EnvironmentError {
    const { baseUrl, model } = this.settings;
    return new EnvironmentError(
      'LLM_REFUSED',
      `${baseUrl} refuses requests to \`${model}\`: ${problem}. Look at the key, the model and the address`,
    );
  }

  async #connect(): Promise<OpenAI> {
    return (await openAiClient(this.settings, 'Language models are asked with', 'LLM_SETTINGS')) as OpenAI;
  }
}

const NAME = 'set_knobs';

/**
 * The fields of a request by the ways to ask a model for an action. Servers differ in what they can do: the first way that
 * one does not refuse is kept.
 */
const ANSWER_FORMATS = {
  json_schema: (schema: JsonSchema) => ({
    response_format: { type: 'json_schema' as const, json_schema: { name: NAME, schema, strict: true } },
  }),
  tool: (parameters: JsonSchema) => ({
    tools: [
      {
        type: 'function' as const,
        function: { name: NAME, description: 'Sets the knobs for the next window', parameters },
      },
    ],
    tool_choice: { type: 'function' as const, function: { name: NAME } },
  }),
  json_object: () => ({ response_format: { type: 'json_object' as const } }),
  plain: () => ({}),
};
type AnswerFormat = keyof typeof ANSWER_FORMATS;
const FORMATS = Object.keys(ANSWER_FORMATS) as AnswerFormat[];

export type JsonSchema = Record<string, unknown>;

/** The text in which the action stands; `null` when there is none. */
function answerText(message: OpenAI.ChatCompletionMessage | undefined): string | null {
  const [call] = message?.tool_calls ?? [];
  if (call !== undefined && 'function' in call && call.function) return call.function.arguments;
  return message?.content ?? null;
}

/** The JSON object in an answer, also inside prose or a fence; the last one, since models think first. */
export function jsonIn(text: string): unknown {
  const whole = parsed(text);
  if (whole !== undefined) return whole;
  let found: unknown;
  for (let start = text.indexOf('{'); start >= 0; start = text.indexOf('{', start + 1)) {
    const end = objectEnd(text, start);
    const object = end < 0 ? undefined : parsed(text.slice(start, end));
    if (object === undefined) continue;
    found = object;
    start = end - 1;
  }
  return found;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Behind the brace that closes the one at `start`; -1 when none does. */
function objectEnd(text: string, start: number): number {
  let depth = 0;
  let isText = false;
  for (let i = start; i < text.length; i++) {
    const character = text[i];
    if (isText) {
      if (character === '\\') i++;
      else if (character === '"') isText = false;
    } else if (character === '"') isText = true;
    else if (character === '{') depth++;
    else if (character === '}' && --depth === 0) return i + 1;
  }
  return -1;
}
