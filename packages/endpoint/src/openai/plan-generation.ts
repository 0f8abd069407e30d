import type { LiveRequest, LiveServer } from '../live/live-server.ts';
import type { AnswerShape } from './generate.ts';
import { ApiError, type ChatRequest, type CompletionRequest } from './requests.ts';
import { type Prompt, planReply, prefixIds, promptTokens } from './text.ts';

/** The simulated model of an endpoint. */
export interface EndpointModel {
  /** Names that requests may use; the first is the model's own, the last are those of adapters. */
  readonly names: readonly [string, ...string[]];
  readonly adapters: readonly string[];
  /** Most tokens of a prompt and its reply together. */
  readonly maxModelLen: number;
  /** Tokens in a KV block. */
  readonly blockTokens: number;
  readonly prefixCaching: boolean;
  /** Seed of the replies' lengths and words. */
  readonly seed: number;
}

export const RAISE_POOL = 'Ask for fewer tokens, or raise `kv_budget_fraction` at /admin/knobs.';
/** Over all prompts of a request. */
const MOST_CHOICES = 1024;
const PRIORITIES = { low: 0, high: 7 };

/** What a request of either API asks for. */
export interface Asked {
  readonly request: CompletionRequest | ChatRequest;
  readonly shape: AnswerShape;
  readonly prompts: readonly Prompt[];
  readonly maxTokens: number | null;
}

/** Plans what a live server is to generate for each request of a model. */
export class GenerationPlanner {
  readonly #live: LiveServer;
  readonly #model: EndpointModel;
  #requests = 0;

  constructor(live: LiveServer, model: EndpointModel) {
    this.#live = live;
    this.#model = model;
  }

  /**
   * @param arrivedMs Wall time at which it came in, ms.
   * @throws {ApiError} for what the model or the KV pool cannot serve.
   */
  plan({ request, shape, prompts, maxTokens }: Asked, arrivedMs: number, requestId: string | undefined) {
    refuseUnsupported(request);
    const model = this.knownModel(request.model ?? undefined);
    const { n, priority } = sequencesOf(request, prompts.length);
    const number = this.#requests++;
    const { blockTokens, prefixCaching, adapters } = this.#model;
    const adapter = adapters.indexOf(model) + 1;
    const choices = prompts.flatMap((prompt, p) => {
      const tokens = promptTokens(prompt);
      const limits = {
        maxTokens: this.#roomFor(tokens, maxTokens),
        minTokens: request.min_tokens ?? 0,
        ignoreEos: request.ignore_eos ?? false,
        stop: [request.stop ?? []].flat(),
      };
      const ids = prefixCaching ? prefixIds(prompt, blockTokens, adapter) : [];
      const prefix = ids.length === 0 ? null : { ids, chunkTokens: blockTokens };
      return Array.from({ length: n }, (_, i) => {
        const reply = planReply(this.#replySeed(request.seed ?? null, number, p * n + i), limits);
        const { finishReason } = reply;
        const lengths = { promptTokens: tokens, outputTokens: reply.tokens, maxTokens: limits.maxTokens };
        const how = { choices: n, finishReason, priority, adapter, prefix, arrivedMs };
        return { request: { ...lengths, ...how }, reply };
      });
    });
    for (const choice of choices) this.#requirePool(choice.request);
    const id = requestId ?? crypto.randomUUID();
    return {
      head: { id: `${shape.idPrefix}-${id}`, created: unixSeconds(), model },
      shape,
      choices,
      /** Tokens of the prompts, each counted once. */
      promptTokens: prompts.reduce((sum, prompt) => sum + promptTokens(prompt), 0),
      stream: request.stream ?? false,
      /** Whether a stream ends with its usage, and whether every chunk carries the usage so far. */
      includeUsage: request.stream_options?.include_usage ?? false,
      continuousUsage: request.stream_options?.continuous_usage_stats ?? false,
      headers: { 'x-request-id': id },
    };
  }

  /** The name of the model that a request asks for. @throws {ApiError} for one that is not served. */
  knownModel(name: string | undefined): string {
    const { names } = this.#model;
    if (name === undefined) return names[0];
    if (names.includes(name)) return name;
    const known = names.map((each) => `\`${each}\``).join(', ');
    const detail = `This endpoint serves ${known}; --served-model-name adds names.`;
    const message = `The model \`${name.slice(0, 200)}\` does not exist. ${detail}`;
    throw new ApiError(404, 'model_not_found', message, 'model');
  }

  #roomFor(prompt: number, asked: number | null): number {
    const { maxModelLen } = this.#model;
    const room = maxModelLen - prompt;
    if (room >= 1 && (asked ?? 1) <= room) return asked ?? room;
    const wanted = `${prompt} in the prompt${asked === null ? '' : ` and ${asked} to generate`}`;
    const limit = `This model's maximum context length is ${maxModelLen} tokens`;
    const message = `${limit}, and the request asks for ${wanted}. Shorten the prompt or ask for fewer tokens.`;
    throw new ApiError(400, 'context_length_exceeded', message, room >= 1 ? 'max_tokens' : null);
  }

  #requirePool(request: LiveRequest): void {
    const { engines, servingConfig } = this.#live.server;
    const most = request.promptTokens + request.outputTokens - 1 + servingConfig.speculationDepth;
    const blocks = engines[0].blocksOfRequest(most);
    const pool = Math.min(...engines.map((engine) => engine.kvBlocksTotal));
    if (blocks <= pool) return;
    const needed = `The request needs up to ${blocks} KV blocks, and the pool has ${pool}.`;
    throw new ApiError(400, 'kv_pool_exceeded', `${needed} ${RAISE_POOL}`);
  }

  /** Requests of one seed get one reply; without a seed each gets its own. */
  #replySeed(asked: number | null, request: number, choice: number): number {
    const first = asked === null ? this.#model.seed + request : Math.abs(asked);
    return (first * 131 + choice) % Number.MAX_SAFE_INTEGER;
  }
}

/** Sequences for each prompt of a request, and their class. */
function sequencesOf({ n, priority }: CompletionRequest | ChatRequest, prompts: number) {
  const sequences = { n: n ?? 1, priority: priority ?? 0 };
  const { low, high } = PRIORITIES;
  if (sequences.priority < low || sequences.priority > high) {
    const expected = `Expected \`priority\` to be from ${low} (most urgent) to ${high}, got ${priority}.`;
    const why = 'The simulated scheduler tells eight classes apart.';
    throw new ApiError(400, 'invalid_value', `${expected} ${why}`, 'priority');
  }
  if (prompts * sequences.n > MOST_CHOICES) {
    const got = `${prompts} prompts with \`n\` ${n}`;
    throw new ApiError(400, 'invalid_value', `Expected at most ${MOST_CHOICES} choices, got ${got}.`, 'n');
  }
  return sequences;
}

function refuseUnsupported(request: CompletionRequest | ChatRequest): void {
  const refuse = (param: string, why: string) => {
    throw new ApiError(400, 'unsupported_parameter', `\`${param}\` is not supported: ${why}`, param);
  };
  const { logprobs, response_format: format, tool_choice: tool } = request;
  if (logprobs !== undefined && logprobs !== null && logprobs !== false) {
    refuse('logprobs', 'there is no model that would give probabilities.');
  }
  if (format && format.type !== 'text') {
    refuse('response_format', 'the simulated model writes words without meaning, and no JSON.');
  }
  if (tool !== undefined && tool !== null && tool !== 'auto' && tool !== 'none') {
    refuse('tool_choice', 'the simulated model calls no tools.');
  }
  if (request.echo) refuse('echo', 'replies do not repeat their prompts.');
  if (request.suffix) refuse('suffix', 'nothing is inserted.');
  if (typeof request.best_of === 'number' && request.best_of !== (request.n ?? 1)) {
    refuse('best_of', 'no reply is better than another. Use `n`.');
  }
}

export function unixSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
