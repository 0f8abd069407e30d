import type OpenAI from 'openai';
import type { RealSettings } from './real-settings.ts';

/** A request to the real server. */
export interface RealRequest {
  readonly prompt: string;
  /** Tokens to generate; a server that cannot be told to ignore its end of text may stop before. */
  readonly outputTokens: number;
  /** 0 is the most urgent; `null` sends none. */
  readonly priority: number | null;
}

/** What came of a request. Wall times, ms. */
export interface RealAnswer {
  /**
   * `completed`, or why not: `http_429` and the like, `connection`, `timeout`, `broken_stream` (it ended early or was
   * no stream), `aborted` (the session was closed).
   */
  readonly outcome: string;
  /** From the first attempt to the first token; `null` when none came. */
  readonly ttftMs: number | null;
  /** From the first token to the last. */
  readonly decodeMs: number;
  /** Between the pieces of the stream. */
  readonly gapsMs: readonly number[];
  /** As the server counts them; where it does not, prompt tokens are 0 and each piece is a token. */
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly retries: number;
}

/** Asks a real server over the OpenAI API, and measures. */
export class RealClient {
  readonly #settings: RealSettings;
  readonly #client: OpenAI;

  private constructor(settings: RealSettings, client: OpenAI) {
    this.#settings = settings;
    this.#client = client;
  }

  /** The official client takes longer to load than all the rest of the environment: only real mode does. */
  static async create(settings: RealSettings): Promise<RealClient> {
    const { default: Client } = await import('openai');
    const client = new Client({
      baseURL: settings.baseUrl,
      apiKey: settings.apiKey,
      maxRetries: settings.retries,
      timeout: settings.timeoutSeconds * 1000,
      // What goes wrong is an outcome; the client would also write it to the console.
      logLevel: 'off',
    });
    return new RealClient(settings, client);
  }

  /** Ids of the models that the server lists. @throws APIError */
  async models(signal: AbortSignal): Promise<string[]> {
    const page = await this.#client.models.list({ signal });
    return page.data.map(({ id }) => id);
  }

  /** Sends a request and reads its stream to the end. Never throws: what goes wrong is the outcome. */
  async complete(request: RealRequest, model: string, signal: AbortSignal): Promise<RealAnswer> {
    const { provider, timeoutSeconds } = this.#settings;
    const timeout = AbortSignal.timeout(timeoutSeconds * 1000);
    const gapsMs: number[] = [];
    let attempts = 0;
    let firstMs: number | null = null;
    let lastMs = 0;
    let usage = { prompt_tokens: 0, completion_tokens: 0 };
    let isFinished = false;
    const startMs = performance.now();
    let outcome = 'completed';
    try {
      const client = this.#client.withOptions({
        fetch: (url: string | URL | Request, init?: RequestInit) => {
          attempts++;
          return fetch(url, init);
        },
      });
      const stream = await client.chat.completions.create(
        {
          model,
          messages: [{ role: 'user', content: request.prompt }],
          max_completion_tokens: request.outputTokens,
          stream: true,
          stream_options: { include_usage: true },
          ...(provider === 'openai' ? {} : vllmFields(request)),
        },
        { signal: AbortSignal.any([signal, timeout]) },
      );
      for await (const chunk of stream) {
        if (chunk.usage) usage = chunk.usage;
        const [choice] = chunk.choices;
        if (choice?.finish_reason) isFinished = true;
        if (!choice?.delta?.content) continue;
        const nowMs = performance.now();
        if (firstMs === null) firstMs = nowMs;
        else gapsMs.push(nowMs - lastMs);
        lastMs = nowMs;
      }
      // The client ends the iteration quietly when the stream is aborted.
      if (signal.aborted || timeout.aborted) outcome = signal.aborted ? 'aborted' : 'timeout';
      else if (!isFinished || firstMs === null) outcome = 'broken_stream';
    } catch (error) {
      outcome = outcomeOf(error, signal, timeout);
    }
    const pieces = firstMs === null ? 0 : gapsMs.length + 1;
    return {
      outcome,
      ttftMs: firstMs === null ? null : firstMs - startMs,
      decodeMs: firstMs === null ? 0 : lastMs - firstMs,
      gapsMs,
      promptTokens: usage.prompt_tokens,
      completionTokens: Math.max(usage.completion_tokens, pieces),
      retries: Math.max(0, attempts - 1),
    };
  }
}

/** Fields of vLLM, of which the client's types know nothing. */
function vllmFields({ outputTokens, priority }: RealRequest): object {
  return {
    ignore_eos: true,
    min_tokens: outputTokens,
    ...(priority === null ? {} : { priority }),
  };
}

function outcomeOf(error: unknown, signal: AbortSignal, timeout: AbortSignal): string {
  if (signal.aborted) return 'aborted';
  if (timeout.aborted) return 'timeout';
  const failure = error as Error & { readonly status?: number };
  if (failure.status !== undefined) return `http_${failure.status}`;
  if (failure.constructor.name === 'APIConnectionError') return 'connection';
  return 'broken_stream';
}
