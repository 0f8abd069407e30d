import type { HttpBindings } from '@hono/node-server';
import type { Hono } from 'hono';
import type { LiveServer } from '../live/live-server.ts';
import { CHAT_SHAPE, COMPLETION_SHAPE } from './answer-shape.ts';
import { readBody } from './api-error.ts';
import { generate } from './generate.ts';
import { type EndpointModel, GenerationPlanner, unixSeconds } from './plan-generation.ts';
import { chatPrompt, type Prompt, textTokens } from './prompt.ts';
import {
  type CompletionRequest,
  chatRequest,
  completionRequest,
  tokenizeRequest,
} from './request-schemas.ts';

export type EndpointApp = Hono<{ Bindings: HttpBindings }>;

/** vLLM gives a completion that many tokens when the request says nothing. */
const DEFAULT_COMPLETION_TOKENS = 16;

/** The routes that clients of the OpenAI API and of vLLM use. */
export function mountOpenAiRoutes(app: EndpointApp, live: LiveServer, model: EndpointModel): void {
  const created = unixSeconds();
  const planner = new GenerationPlanner(live, model);

  app.post('/v1/completions', async (context) => {
    const arrivedMs = performance.now();
    const request = await readBody(context, completionRequest);
    const asked = {
      shape: COMPLETION_SHAPE,
      prompts: promptsOf(request.prompt),
      maxTokens: request.max_tokens ?? DEFAULT_COMPLETION_TOKENS,
      arrivedMs,
    };
    return generate(context, live, planner.plan(request, asked, context.req.header('x-request-id')));
  });

  app.post('/v1/chat/completions', async (context) => {
    const arrivedMs = performance.now();
    const request = await readBody(context, chatRequest);
    const asked = {
      shape: CHAT_SHAPE,
      prompts: [chatPrompt(request.messages, request.tools ?? [])],
      maxTokens: request.max_completion_tokens ?? request.max_tokens ?? null,
      arrivedMs,
    };
    return generate(context, live, planner.plan(request, asked, context.req.header('x-request-id')));
  });

  const describe = (id: string) => ({
    id,
    object: 'model',
    created,
    owned_by: 'servegym',
    root: model.names[0],
    parent: null,
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
