import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import type { LiveServer } from '../live/live-server.ts';
import { type AnswerShape, CHAT_SHAPE, COMPLETION_SHAPE } from './answer-shape.ts';
import { ApiError } from './api-error.ts';
import { chatPrompt } from './chat-prompt.ts';
import { type GenerationPlan, generate, type PlannedChoice } from './generate.ts';
import { type Prompt, prefixIds, promptTokens, textTokens } from './prompt.ts';
import { readBody } from './read-body.ts';
import { planReply } from './reply.ts';
import {
  type ChatRequest,
  type CompletionRequest,
  chatRequest,
  completionRequest,
  tokenizeRequest,
} from './request-schemas.ts';

export interface ServedModel {
  /** Names that requests may use; the first is the model's own. */
  readonly names: readonly [string, ...string[]];
  /** Most tokens of a prompt and its reply together. */
  readonly maxModelLen: number;
  /** Tokens in a KV block. */
  readonly blockTokens: number;
  readonly prefixCaching: boolean;
  /** Seed of the replies' lengths and words. */
  readonly seed: number;
}

export type EndpointApp = Hono<{ Bindings: HttpBindings }>;
type EndpointContext = Context<{ Bindings: HttpBindings }>;

/** vLLM gives a completion that many tokens when the request says nothing. */
const DEFAULT_COMPLETION_TOKENS = 16;
/** Over all prompts of a request. */
const MOST_CHOICES = 1024;
const PRIORITIES = { low: 0, high: 7 };

/** The routes that clients of the OpenAI API and of vLLM use. */
export function mountOpenAiRoutes(app: EndpointApp, live: LiveServer, model: ServedModel): void {
  const created = unixSeconds();
  let requests = 0;

  app.post('/v1/completions', async (context) => {
    const arrivedMs = performance.now();
    const request = await readBody(context, completionRequest);
    refuseUnsupported(request);
    const prompts = promptsOf(request.prompt);
    const maxTokens = request.max_tokens ?? DEFAULT_COMPLETION_TOKENS;
    return start(context, request, { shape: COMPLETION_SHAPE, prompts, maxTokens, arrivedMs });
  });

  app.post('/v1/chat/completions', async (context) => {
    const arrivedMs = performance.now();
    const request = await readBody(context, chatRequest);
    refuseUnsupported(request);
    const prompts = [chatPrompt(request.messages, request.tools ?? [])];
    const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? null;
    return start(context, request, { shape: CHAT_SHAPE, prompts, maxTokens, arrivedMs });
  });

  app.get('/v1/models', (context) =>
    context.json({
      object: 'list',
      data: model.names.map((id) => describeModel(id)),
    }),
  );
  app.get('/v1/models/:id{.+}', (context) =>
    context.json(describeModel(knownModel(context.req.param('id')))),
  );

  app.post('/tokenize', async (context) => {
    const request = await readBody(context, tokenizeRequest);
    knownModel(typeof request.model === 'string' ? request.model : undefined);
    const text = 'prompt' in request ? String(request.prompt) : chatPrompt(request.messages);
    return context.json({ count: textTokens(text), max_model_len: model.maxModelLen });
  });

  function start(
    context: EndpointContext,
    request: CompletionRequest | ChatRequest,
    {
      shape,
      prompts,
      maxTokens,
      arrivedMs,
    }: {
      readonly shape: AnswerShape;
      readonly prompts: readonly Prompt[];
      readonly maxTokens: number | null;
      readonly arrivedMs: number;
    },
  ): Response | Promise<Response> {
    const name = knownModel(request.model ?? undefined);
    const priority = request.priority ?? 0;
    if (priority < PRIORITIES.low || priority > PRIORITIES.high) {
      throw new ApiError(
        400,
        'invalid_value',
        `Expected \`priority\` to be from ${PRIORITIES.low} (most urgent) to ${PRIORITIES.high}, got ${priority}. The simulated scheduler tells eight classes apart.`,
        'priority',
      );
    }
    const number = requests++;
    const n = request.n ?? 1;
    if (prompts.length * n > MOST_CHOICES) {
      throw new ApiError(
        400,
        'invalid_value',
        `Expected at most ${MOST_CHOICES} choices, got ${prompts.length} prompts with \`n\` ${n}.`,
        'n',
      );
    }
    const choices = prompts.flatMap((prompt, p): PlannedChoice[] => {
      const tokens = promptTokens(prompt);
      const limits = {
        maxTokens: requireFit(tokens, maxTokens),
        minTokens: request.min_tokens ?? 0,
        ignoreEos: request.ignore_eos ?? false,
        stop: [request.stop ?? []].flat(),
      };
      const ids = model.prefixCaching ? prefixIds(prompt, model.blockTokens) : [];
      const prefix = ids.length === 0 ? null : { ids, chunkTokens: model.blockTokens };
      return Array.from({ length: n }, (_, i) => {
        const reply = planReply(replySeed(request.seed ?? null, number, p * n + i), limits);
        return {
          request: {
            promptTokens: tokens,
            outputTokens: reply.tokens,
            maxTokens: limits.maxTokens,
            choices: n,
            finishReason: reply.finishReason,
            priority,
            prefix,
            arrivedMs,
          },
          reply,
        };
      });
    });
    for (const choice of choices) requirePool(choice);
    const id = context.req.header('x-request-id') ?? crypto.randomUUID();
    const plan: GenerationPlan = {
      head: { id: `${shape.idPrefix}-${id}`, created: unixSeconds(), model: name },
      shape,
      choices,
      promptTokens: prompts.reduce((sum, prompt) => sum + promptTokens(prompt), 0),
      stream: request.stream ?? false,
      includeUsage: request.stream_options?.include_usage ?? false,
      continuousUsage: request.stream_options?.continuous_usage_stats ?? false,
      headers: { 'x-request-id': id },
    };
    return generate(context, live, plan);
  }

  /** The tokens that a reply may have. */
  function requireFit(prompt: number, asked: number | null): number {
    const room = model.maxModelLen - prompt;
    if (room >= 1 && (asked ?? 1) <= room) return asked ?? room;
    const wanted =
      asked === null ? `${prompt} in the prompt` : `${prompt} in the prompt and ${asked} to generate`;
    throw new ApiError(
      400,
      'context_length_exceeded',
      `This model's maximum context length is ${model.maxModelLen} tokens, and the request asks for ${wanted}. Shorten the prompt or ask for fewer tokens.`,
      room >= 1 ? 'max_tokens' : null,
    );
  }

  function requirePool({ request }: PlannedChoice): void {
    const { engines, servingConfig } = live.server;
    const most = request.promptTokens + request.outputTokens - 1 + servingConfig.speculationDepth;
    const blocks = Math.ceil(most / model.blockTokens);
    const pool = Math.min(...engines.map((engine) => engine.kvBlocksTotal));
    if (blocks <= pool) return;
    throw new ApiError(
      400,
      'kv_pool_exceeded',
      `The request needs up to ${blocks} KV blocks, and the pool has ${pool}. Ask for fewer tokens, or raise \`kv_budget_fraction\` at /admin/knobs.`,
    );
  }

  function knownModel(name: string | undefined): string {
    if (name === undefined) return model.names[0];
    if (model.names.includes(name)) return name;
    throw new ApiError(
      404,
      'model_not_found',
      `The model \`${name.slice(0, 200)}\` does not exist. This endpoint serves ${model.names.map((known) => `\`${known}\``).join(', ')}; --served-model-name adds names.`,
      'model',
    );
  }

  function describeModel(id: string): object {
    return {
      id,
      object: 'model',
      created,
      owned_by: 'servegym',
      root: model.names[0],
      parent: null,
      max_model_len: model.maxModelLen,
    };
  }

  /** Requests of one seed get one reply; without a seed each gets its own. */
  function replySeed(asked: number | null, request: number, choice: number): number {
    const first = asked === null ? model.seed + request : Math.abs(asked);
    return (first * 131 + choice) % Number.MAX_SAFE_INTEGER;
  }
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

function promptsOf(prompt: CompletionRequest['prompt']): Prompt[] {
  if (typeof prompt === 'string') return [prompt];
  if (typeof prompt[0] === 'number') return [prompt as number[]];
  return prompt as Prompt[];
}

function unixSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
