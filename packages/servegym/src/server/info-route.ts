import type { RegisteredEnvironment } from '@servegym/environments';
import { jsonValue, type OpenEnvServer, publishedSchemas } from '@servegym/openenv';
import { z } from 'zod';

const object = jsonValue<object>({ type: 'object' });

/** `GET /info`: what an agent has to know before it plays, in one answer. */
export function mountInfoRoute(server: OpenEnvServer, entry: RegisteredEnvironment): void {
  const { definition } = server;
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
      name: definition.name,
      version: definition.version,
      description: definition.description,
      action_schema: schemas.action,
      observation_schema: schemas.observation,
      state_schema: schemas.state,
      reward_weights: ofTasks(entry.rewardWeights),
      episode_lengths: ofTasks(entry.steps),
      tasks: definition.tasks ?? [],
    }),
  );
}
