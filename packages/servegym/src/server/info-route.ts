import { jsonValue, type OpenEnvServer, publishedSchemas } from '@servegym/openenv';
import { z } from 'zod';

/** Fields of `/info` beside the schemas of an environment. */
export interface EnvironmentInfo {
  /** Weights of the reward, for each task. */
  readonly rewardWeights: Readonly<Record<string | number, object>>;
  /** Steps of an episode, for each task. */
  readonly episodeLengths: Readonly<Record<string | number, number>>;
}

const object = jsonValue<object>({ type: 'object' });

/** `GET /info`: what an agent has to know before it plays, in one answer. */
export function mountInfoRoute<Action, Observation extends object, State extends object>(
  server: OpenEnvServer<Action, Observation, State>,
  { rewardWeights, episodeLengths }: EnvironmentInfo,
): void {
  const { definition } = server;
  const schemas = publishedSchemas(definition);
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
      reward_weights: rewardWeights,
      episode_lengths: episodeLengths,
      tasks: definition.tasks ?? [],
    }),
  );
}
