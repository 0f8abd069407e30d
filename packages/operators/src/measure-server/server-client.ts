import { Agent, type IncomingMessage, request } from 'node:http';
import { Agent as SecureAgent, request as secureRequest } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { type MeasuredLoad, type MeasuredRequest, measuredLoad } from '@servegym/profiles';
import { randomUniform, streamKey } from '@servegym/simulator';
import { TuningError } from '../search/slo.ts';
import type { Probe, ProbeRequest } from './probe.ts';
import type { ServerFacts } from './start-profile.ts';

/** Limits that a server tells. What it does not tell is missing. */
export type ToldFacts = Partial<ServerFacts> & { readonly model: string };

export interface ServerClientOptions {
  /** Address of the API, with `/v1`. */
  readonly url: string;
  readonly apiKey?: string;
  /** Default: the first that the server lists. */
  readonly model?: string;
  /** Seconds from the sending of a request to its last token. */
  readonly timeoutS: number;
}

/** Ways to ask for tokens, the exact one first: token ids, text whose tokens the server counts, a conversation. */
const FORMS = ['ids', 'text', 'chat'] as const;
type Form = (typeof FORMS)[number];
/** Fields that not every server takes. */
const optionalFields = ({ outputTokens }: ProbeRequest) => ({
  ...{ ignore_eos: true, min_tokens: outputTokens, return_token_ids: true },
  stream_options: { include_usage: true },
});
/** Ids that are ordinary tokens of every vocabulary. */
const TOKEN_IDS = [10, 1000] as const;
/** Each with the space behind it has four characters, which are a token of most vocabularies and of the endpoint. */
const WORDS = 'the and for are but not you all any can had her was one our out'.split(' ');
const HANDSHAKE = { atMs: 0, inputTokens: 8, outputTokens: 4 };
const FACTS_TIMEOUT_MS = 10_000;
/** Share of the requests of a load that may fail before it says nothing. */
const MOST_FAILED = 0.2;

type Answer = Awaited<ReturnType<typeof readStream>>;

/** Sends loads to a server of the OpenAI API that streams, and measures them. */
export class ServerClient {
  readonly #options: ServerClientOptions;
  readonly #base: URL;
  readonly #agent: Agent;
  #model = '';
  #form: Form = 'ids';
  /** Of the optional fields, those that the server does not take. */
  readonly #refused = new Set<string>();

  /** @throws TuningError for an address that is none. */
  constructor(options: ServerClientOptions) {
    this.#options = options;
    const url = URL.canParse(options.url) ? new URL(options.url) : undefined;
    const expected = 'expected the address of an API, such as http://gpu:8000/v1';
    if (url === undefined || !/^https?:$/.test(url.protocol))
      throw new TuningError('SERVER_ADDRESS', `${expected}, got ${options.url}`);
    this.#base = url;
    const Kind = url.protocol === 'https:' ? SecureAgent : Agent;
    this.#agent = new Kind({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  }

  close(): void {
    this.#agent.destroy();
  }

  /**
   * Limits that the server tells, after one short request that shows which fields it takes.
   * @throws TuningError when it cannot be reached, refuses, or does not stream tokens.
   */
  async connect(): Promise<ToldFacts> {
    const listed = (await this.#models())?.data ?? [];
    this.#model = this.#options.model ?? listed[0]?.id ?? '';
    if (this.#model === '') {
      throw refused(`${this.#base}models lists no model: name one with --model-name`);
    }
    await this.#handshake();
    const [metrics, version, sglang] = await Promise.all([
      this.#root('metrics'),
      this.#root('version'),
      this.#root('get_server_info'),
    ]);
    return {
      model: this.#model,
      maxModelLen: listed.find(({ id }) => id === this.#model)?.max_model_len,
      ...factsOf(metrics, version, sglang),
    };
  }

  /**
   * Sends a load and measures each request. Failed requests are left out.
   * @throws TuningError when too many fail; the reason of `signal` when it is aborted.
   */
  async measure(probe: Probe, signal: AbortSignal): Promise<MeasuredLoad> {
    const startMs = performance.now();
    const rows: MeasuredRequest[] = [];
    const failures: Error[] = [];
    const one = async (asked: ProbeRequest) => {
      const sentMs = performance.now();
      try {
        const answer = await this.#complete(asked, signal);
        rows.push({ arrivalMs: sentMs - startMs, ...answer });
      } catch (error) {
        if (signal.aborted) return;
        failures.push(error as Error);
      }
    };
    const pending: Promise<void>[] = [];
    for (const asked of probe.requests) {
      if (signal.aborted) break;
      if (probe.isSequential) await one(asked);
      else {
        await sleep(Math.max(0, startMs + asked.atMs - performance.now()), undefined, { signal }).catch(
          () => undefined,
        );
        pending.push(one(asked));
      }
    }
    await Promise.all(pending);
    signal.throwIfAborted();
    if (failures.length > MOST_FAILED * probe.requests.length) {
      throw refused(
        `${failures.length} of ${probe.requests.length} requests of the load ${probe.name} failed, the first: ${failures[0].message}`,
      );
    }
    return measuredLoad(probe.name, rows, failures.length);
  }

  /** Finds the form and the fields that the server takes. */
  async #handshake(): Promise<void> {
    const signal = AbortSignal.timeout(1000 * this.#options.timeoutS);
    let refusal: TuningError | undefined;
    for (const form of FORMS) {
      this.#form = form;
      this.#refused.clear();
      while (true) {
        try {
          await this.#complete(HANDSHAKE, signal);
          return;
        } catch (error) {
          if (!(error instanceof TuningError)) throw error;
          refusal = error;
          const named = Object.keys(optionalFields(HANDSHAKE)).filter(
            (field) => !this.#refused.has(field) && error.message.includes(field),
          );
          if (named.length === 0) break;
          for (const field of named) this.#refused.add(field);
        }
      }
    }
    throw refusal;
  }

  #body(asked: ProbeRequest): object {
    const fields = Object.entries(optionalFields(asked)).filter(([field]) => !this.#refused.has(field));
    const common = {
      ...{ model: this.#model, max_tokens: asked.outputTokens, temperature: 0, stream: true },
      ...Object.fromEntries(fields),
    };
    const draws = promptDraws(asked);
    if (this.#form === 'ids') {
      const [low, high] = TOKEN_IDS;
      return { ...common, prompt: draws.map((draw) => low + Math.floor(draw * (high - low))) };
    }
    const text = draws.map((draw) => WORDS[Math.floor(draw * WORDS.length)]).join(' ');
    return this.#form === 'chat'
      ? { ...common, messages: [{ role: 'user', content: text }] }
      : { ...common, prompt: text };
  }

  #complete(asked: ProbeRequest, signal: AbortSignal): Promise<Answer> {
    const address = this.#address(this.#form === 'chat' ? 'chat/completions' : 'completions');
    const body = JSON.stringify(this.#body(asked));
    const timeout = AbortSignal.timeout(1000 * this.#options.timeoutS);
    return new Promise((resolve, reject) => {
      const startMs = performance.now();
      const send = this.#base.protocol === 'https:' ? secureRequest : request;
      const sent = send(
        address,
        {
          method: 'POST',
          agent: this.#agent,
          signal: AbortSignal.any([signal, timeout]),
          headers: {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body),
            ...this.#auth(),
          },
        },
        (response) => readStream(response, startMs, asked, String(address)).then(resolve, reject),
      );
      sent.setNoDelay(true);
      sent.on('error', (error) =>
        reject(timeout.aborted ? new Error(`no answer within ${this.#options.timeoutS} s`) : error),
      );
      sent.end(body);
    });
  }

  async #models(): Promise<{ readonly data?: readonly { id: string; max_model_len?: number }[] } | null> {
    const address = this.#address('models');
    const answer = await this.#get(address).catch(({ message, cause }: Error) => {
      const reason = cause instanceof Error ? cause.message : message;
      throw new TuningError('SERVER_UNREACHABLE', `${address} cannot be reached: ${reason}`);
    });
    const text = await answer.text();
    if (!answer.ok) {
      throw refused(
        `${address} answered ${answer.status}: ${text.slice(0, 300)}. Expected a list of models: check the address (it ends in /v1) and --api-key`,
      );
    }
    try {
      return JSON.parse(text);
    } catch {
      throw refused(
        `${address} answered ${text.slice(0, 100)}, expected JSON. The address usually ends in /v1`,
      );
    }
  }

  #get(address: URL): Promise<Response> {
    return fetch(address, { headers: this.#auth(), signal: AbortSignal.timeout(FACTS_TIMEOUT_MS) });
  }

  /** A text beside the API, empty where there is none. */
  async #root(path: string): Promise<string> {
    try {
      const answer = await this.#get(this.#address(path, /\/v1\/?$/));
      return answer.ok ? await answer.text() : '';
    } catch {
      return '';
    }
  }

  /** @param beside end of the API's path that the address does without */
  #address(path: string, beside = /$/): URL {
    const address = new URL(this.#base);
    address.pathname = address.pathname.replace(beside, '').replace(/\/?$/, `/${path}`);
    return address;
  }

  #auth(): Record<string, string> {
    const { apiKey } = this.#options;
    return apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  }
}

/** A number in [0, 1) for each token of a prompt: random where no prefix is named, so that no cache helps. */
function promptDraws({ inputTokens, prefix }: ProbeRequest): number[] {
  return Array.from({ length: inputTokens }, (_, at) => {
    const block = prefix && Math.floor(at / prefix.blockTokens);
    return prefix === undefined || block! >= prefix.ids.length
      ? Math.random()
      : randomUniform(streamKey(prefix.ids[block!], 'prompt'), at, 0);
  });
}

async function readStream(response: IncomingMessage, startMs: number, asked: ProbeRequest, address: string) {
  response.setEncoding('utf8');
  let rest = '';
  let firstMs = 0;
  let lastMs = 0;
  let pieces = 0;
  let usage: { readonly prompt_tokens?: number; readonly completion_tokens?: number } = {};
  for await (const text of response) {
    const nowMs = performance.now();
    rest += text;
    if (response.statusCode !== 200) continue;
    const lines = rest.split('\n');
    rest = lines.pop()!;
    for (const line of lines) {
      const data = /^data: ?(\{.*)$/.exec(line.trimEnd())?.[1];
      if (data === undefined) continue;
      const chunk = JSON.parse(data);
      if (chunk.error) throw refused(`${address}: ${JSON.stringify(chunk.error).slice(0, 300)}`);
      if (chunk.usage) usage = chunk.usage;
      const { text: token, token_ids: ids, delta } = chunk.choices?.[0] ?? {};
      if (!token && !ids?.length && !delta?.content && !delta?.reasoning_content) continue;
      if (pieces === 0) firstMs = nowMs;
      lastMs = nowMs;
      pieces += 1;
    }
  }
  if (response.statusCode !== 200)
    throw refused(`${address} answered ${response.statusCode}: ${rest.slice(0, 300)}`);
  if (pieces === 0) throw refused(`${address} streamed no token`);
  return {
    ttftMs: firstMs - startMs,
    e2eMs: lastMs - startMs,
    inputTokens: usage.prompt_tokens ?? asked.inputTokens,
    outputTokens: usage.completion_tokens ?? pieces,
  };
}

function refused(message: string): TuningError {
  return new TuningError('SERVER_REFUSED', message);
}

/** Facts in what vLLM and SGLang tell beside the API. */
function factsOf(metrics: string, version: string, sglang: string): Omit<ToldFacts, 'model'> {
  const cache = /^vllm:cache_config_info\{(.*)\} /m.exec(metrics)?.[1] ?? '';
  const label = (name: string) => {
    const value = Number(new RegExp(`(?:^|,)${name}="(\\d+)"`).exec(cache)?.[1] ?? Number.NaN);
    return Number.isFinite(value) && value > 0 ? value : undefined;
  };
  const info = parsed(sglang);
  const told = (name: string) => (typeof info[name] === 'number' && info[name] > 0 ? info[name] : undefined);
  const pool = told('max_total_num_tokens');
  const isSglang = Object.keys(info).length > 0;
  const blockTokens = isSglang ? (told('page_size') ?? 1) : label('block_size');
  const engine = isSglang ? 'SGLang' : cache === '' ? undefined : 'vLLM';
  const engineVersion = String(info.version ?? parsed(version).version ?? 'unknown');
  return {
    ...(engine !== undefined && { engine: { name: engine, version: engineVersion } }),
    ...defined({
      blockTokens,
      kvBlocks: pool === undefined ? label('num_gpu_blocks') : Math.floor(pool / (blockTokens ?? 1)),
      maxNumSeqs: told('max_running_requests'),
      maxNumBatchedTokens: told('chunked_prefill_size'),
      maxModelLen: told('context_length'),
    }),
  };
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}

function defined<T extends object>(values: T): T {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as T;
}
