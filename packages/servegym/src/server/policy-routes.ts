import { EnvironmentError, jsonValue, type OpenEnvServer } from '@servegym/openenv';
import { z } from 'zod';
import type { PolicyCatalogue } from './policy-catalogue.ts';
import { PolicyPlayer } from './policy-player.ts';

const policyStepRequest = z
  .strictObject({
    session_id: z
      .string()
      .max(255)
      .nullish()
      .meta({ description: "The session to play; without one, the caller's latest" }),
    steps: z.int().min(1).max(200).default(1).meta({ description: 'Windows to play' }),
  })
  .meta({ title: 'PolicyStepRequest', examples: [{ steps: 10 }] });

const jsonObject = jsonValue<unknown>({ type: 'object' });

const playedWindow = z.object({
  action: jsonObject,
  observation: jsonObject,
  reward: z.number().nullable(),
  done: z.boolean(),
  metadata: jsonObject.optional(),
  explanation: jsonObject
    .optional()
    .meta({ description: 'Why the policy chose the action, where it can tell' }),
});

/**
 * `GET /policies` lists the policies of this server; `POST /policies/{name}/step` lets one of them play a session of
 * HTTP or WebSocket for some windows.
 */
export function mountPolicyRoutes(server: OpenEnvServer, catalogue: PolicyCatalogue<unknown, unknown>): void {
  const player = new PolicyPlayer(server.definition, catalogue);

  server.addRoute(
    {
      method: 'get',
      path: '/policies',
      operationId: 'list_policies_get',
      tag: 'Policies',
      summary: 'List the policies that can play a session',
      answer: z.array(z.object({ name: z.string(), title: z.string(), description: z.string() })),
    },
    () => catalogue.list(),
  );

  server.addRoute(
    {
      method: 'post',
      path: '/policies/{name}/step',
      operationId: 'play_policy_post',
      tag: 'Policies',
      summary: 'Let a policy play a session',
      description: 'Fewer windows than asked for come back when the episode ends.',
      body: policyStepRequest,
      answer: z.object({ steps: z.array(playedWindow), done: z.boolean() }),
      errors: {
        404: 'Unknown session, or unknown policy (`UNKNOWN_POLICY`)',
        409: 'No episode was started (`NOT_RESET`), or it is over (`EPISODE_OVER`)',
        422: 'Invalid body',
        429: 'The client has too many long requests under way (`WORK_QUEUE_FULL`)',
        503: 'The policy thinks too long (`WORK_TIMEOUT`) or needs too much memory (`WORK_MEMORY`)',
      },
    },
    async (context, { parameters: { name }, body: { session_id, steps } }) => {
      const session = await server.sessionOf(context, session_id);
      if (!session) throw new EnvironmentError('NOT_RESET', 'You have no session yet. POST /reset first.');
      const played = await player.play(session, name, steps, server.callerOf(context));
      return { steps: played, done: played.at(-1)?.done === true };
    },
  );
}
