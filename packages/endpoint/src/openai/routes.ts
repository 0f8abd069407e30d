import type { HttpBindings } from '@hono/node-server';
import {
  type EngineProfile,
  type ServingConfig,
  SimulatorError,
  WEIGHT_PRECISIONS,
  weightVariant,
} from '@servegym/simulator';
import type { Hono } from 'hono';
import { z } from 'zod';
import type { LiveServer } from '../live/live-server.ts';
import { CHAT_SHAPE, COMPLETION_SHAPE, generate, RESPONSES_SHAPE } from './generate.ts';
import { type Asked, type EndpointModel, GenerationPlanner, unixSeconds } from './plan-generation.ts';
import {
  ApiError,
  type CompletionRequest,
  chatRequest,
  completionRequest,
  readBody,
  responsesRequest,
  tokenizeRequest,
} from './requests.ts';
import { chatPrompt, type Prompt, textTokens } from './text.ts';

export type EndpointApp = Hono<{ Bindings: HttpBindings }>;

/** vLLM gives a completion that many tokens when the request says nothing. */
const DEFAULT_COMPLETION_TOKENS = 16;

/** The routes that clients of the OpenAI API and of vLLM use. */
export function mountOpenAiRoutes(app: EndpointApp, live: LiveServer, model: EndpointModel): void {
  const created = unixSeconds();
  const planner = new GenerationPlanner(live, model);

  const serve = <Schema extends z.ZodType>(
    path: string,
    schema: Schema,
    ask: (request: z.infer<Schema>) => Asked,
  ) =>
    app.post(path, async (context) => {
      const arrivedMs = performance.now();
      const asked = ask(await readBody(context, schema));
      return generate(context, live, planner.plan(asked, arrivedMs, context.req.header('x-request-id')));
    });
  serve('/v1/completions', completionRequest, (request) => ({
    ...{ request, shape: COMPLETION_SHAPE, prompts: promptsOf(request.prompt) },
    maxTokens: request.max_tokens ?? DEFAULT_COMPLETION_TOKENS,
  }));
  serve('/v1/chat/completions', chatRequest, (request) => ({
    ...{ request, shape: CHAT_SHAPE, prompts: [chatPrompt(request.messages, request.tools ?? [])] },
    maxTokens: request.max_completion_tokens ?? request.max_tokens ?? null,
  }));
  serve('/v1/responses', responsesRequest, ({ input, instructions, text, max_output_tokens, ...request }) => {
    const said = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
    const messages = [...(instructions ? [{ role: 'system', content: instructions }] : []), ...said];
    return {
      request: { ...request, messages, response_format: text?.format },
      ...{ shape: RESPONSES_SHAPE, prompts: [chatPrompt(messages, request.tools ?? [])] },
      maxTokens: max_output_tokens ?? null,
    };
  });

  app.get('/', (context) =>
    context.json({
      name: 'servegym endpoint',
      description: `A simulated vLLM that serves ${model.names[0]} behind the OpenAI API. Its replies are words without meaning.`,
      base_url: `${new URL(context.req.url).origin}/v1`,
      routes: [
        '/v1/chat/completions',
        '/v1/completions',
        '/v1/responses',
        '/v1/models',
        '/metrics',
        '/admin/knobs',
      ],
    }),
  );

  const describe = (id: string) => ({
    id,
    object: 'model',
    created,
    owned_by: 'servegym',
    root: model.names[0],
    parent: model.adapters.includes(id) ? model.names[0] : null,
    max_model_len: model.maxModelLen,
  });
  app.get('/v1/models', (context) => context.json({ object: 'list', data: model.names.map(describe) }));
  app.get('/v1/models/:id{.+}', (context) =>
    context.json(describe(planner.knownModel(context.req.param('id')))),
  );

  app.post('/tokenize', async (context) => {
    const request = await readBody(context, tokenizeRequest);
    planner.knownModel(request.model ?? undefined);
    const text = 'prompt' in request ? String(request.prompt) : chatPrompt(request.messages);
    return context.json({ count: textTokens(text), max_model_len: model.maxModelLen });
  });
}

function promptsOf(prompt: CompletionRequest['prompt']): Prompt[] {
  if (typeof prompt === 'string') return [prompt];
  return typeof prompt[0] === 'number' ? [prompt as number[]] : (prompt as Prompt[]);
}

/** `GET /admin/knobs` returns the settings and their effects; `PATCH /admin/knobs` changes those that it names. */
export function mountKnobRoutes(app: EndpointApp, live: LiveServer, profile: EngineProfile): void {
  app.get('/admin/knobs', (context) => context.json(report()));

  app.patch('/admin/knobs', async (context) => {
    const changes = await readBody(context, servingKnobs);
    try {
      const named = NAMES.filter((name) => changes[name] !== undefined);
      const changed = Object.fromEntries(named.map((name) => [SETTINGS[name], changes[name]]));
      live.configure({ ...live.server.servingConfig, ...changed });
    } catch (error) {
      if (!(error instanceof SimulatorError)) throw error;
      throw new ApiError(400, 'invalid_value', error.message);
    }
    return context.json(report());
  });

  function report(): object {
    const { server } = live;
    const { servingConfig: config } = server;
    return {
      knobs: Object.fromEntries(NAMES.map((name) => [name, config[SETTINGS[name]]])),
      profile: profile.name,
      time_scale: live.clock.timeScale,
      /** Benchmark accuracy that the weights retain, relative to FP16. */
      quality: weightVariant(profile, config.weights).quality,
      /** Of all GPUs of all engines. */
      usd_per_hour: server.engines.length * profile.gpu.count * profile.gpu.usdPerHour,
      draining: server.draining,
      engines: server.engines.map((engine, index) => {
        const { weights, draft, overhead, kvPool, limit } = server.memoryOf(index);
        return {
          role: server.roleOf(index),
          running: engine.runningCount,
          waiting: engine.waitingCount,
          kv_blocks_used: engine.kvBlocksUsed,
          kv_blocks_total: engine.kvBlocksTotal,
          memory_gib: { weights, draft, overhead, kv_pool: kvPool, limit },
          reloading: live.isReloading(index),
        };
      }),
    };
  }
}

/** The settings that can change while the endpoint serves, as the admin route writes them. */
const servingKnobs = z
  .strictObject({
    max_num_seqs: z.int().min(1),
    kv_budget_fraction: z.number().gt(0).max(1),
    speculation_depth: z.int().min(0).max(8),
    weights: z.enum(WEIGHT_PRECISIONS),
    split: z.boolean(),
    scheduling_policy: z.enum(['fcfs', 'priority']),
  })
  .partial();

const SETTINGS = {
  max_num_seqs: 'maxNumSeqs',
  kv_budget_fraction: 'kvBudgetFraction',
  speculation_depth: 'speculationDepth',
  weights: 'weights',
  split: 'split',
  scheduling_policy: 'schedulingPolicy',
} as const satisfies Record<keyof z.infer<typeof servingKnobs>, keyof ServingConfig>;
const NAMES = Object.keys(SETTINGS) as (keyof typeof SETTINGS)[];
