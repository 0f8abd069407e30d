import type { RealSettings, RegisteredEnvironment } from '@servegym/environments';
import { jsonValue, type OpenEnvServer, publishedSchemas } from '@servegym/openenv';
import { z } from 'zod';

const object = jsonValue<object>({ type: 'object' });

/** `GET /info`: what an agent has to know before it plays, in one answer. */
export function mountInfoRoute(server: OpenEnvServer, entry: RegisteredEnvironment): void {
  const { definition } = server;
  const { name, version, description } = definition;
  const schemas = publishedSchemas(definition);
  const tasks = entry.tasks.all();
  const ofTasks = <Value>(value: (task: (typeof tasks)[number]) => Value) =>
    Object.fromEntries(tasks.map((task) => [task.id, value(task)]));
  server.addRoute(
    {
      method: 'get',
      path: '/info',
      operationId: 'info_get',
      tag: 'Environment Info',
      summary: 'Schemas, tasks and reward weights in one answer',
      answer: z.object({
        name: z.string(),
        version: z.string(),
        description: z.string(),
        action_schema: object,
        observation_schema: object,
        state_schema: object,
        reward_weights: object,
        episode_lengths: object,
        tasks: z.array(object),
      }),
    },
    () => ({
      ...{ name, version, description },
      action_schema: schemas.action,
      observation_schema: schemas.observation,
      state_schema: schemas.state,
      reward_weights: ofTasks(entry.rewardWeights),
      episode_lengths: ofTasks(entry.steps),
      tasks: definition.tasks ?? [],
    }),
  );
}

/** `GET /runtime`: whether steps are simulated or measured, on which server, and how many sessions there are. */
export function mountRuntimeRoute(server: OpenEnvServer, real: RealSettings | null): void {
  const mode = real === null ? ('sim' as const) : ('real' as const);
  const backend =
    real === null
      ? { mode, provider: 'simulator' }
      : {
          mode,
          provider: real.provider,
          model: real.model,
          max_requests_per_step: real.maxRequestsPerStep,
          max_prompt_tokens: real.maxPromptTokens,
          max_completion_tokens: real.maxCompletionTokens,
        };
  const seed = server.definition.resetOptions?.shape.seed?.safeParse(undefined).data ?? null;
  server.addRoute(
    {
      method: 'get',
      path: '/runtime',
      operationId: 'runtime_get',
      tag: 'Environment Info',
      summary: 'Whether steps are simulated or measured, and by what',
      answer: z.object({
        mode: z.enum(['sim', 'real']),
        backend: z.looseObject({ mode: z.string(), provider: z.string() }),
        seed: z
          .int()
          .nullable()
          .meta({ description: 'Seed of a reset without one; null where each draws its own' }),
        active_sessions: z.int().min(0),
      }),
    },
    () => ({ mode, backend, seed, active_sessions: server.sessions.size }),
  );
}
