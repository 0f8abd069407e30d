import type { RealSettings } from '@servegym/environments';
import type { OpenEnvServer } from '@servegym/openenv';

/** `GET /runtime`: whether steps are simulated or measured, on which server, and how many sessions there are. */
export function mountRuntimeRoute<Action, Observation extends object, State extends object>(
  server: OpenEnvServer<Action, Observation, State>,
  real: RealSettings | null,
): void {
  const mode = real === null ? 'sim' : 'real';
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
  server.app.get('/runtime', (context) =>
    context.json({ mode, backend, seed, active_sessions: server.sessions.size }),
  );
  server.describeRoute({
    method: 'get',
    path: '/runtime',
    operationId: 'runtime_get',
    tag: 'Environment Info',
    summary: 'Whether steps are simulated or measured, and by what',
    response: {
      type: 'object',
      properties: {
        mode: { type: 'string', enum: ['sim', 'real'] },
        backend: {
          type: 'object',
          properties: { mode: { type: 'string' }, provider: { type: 'string' } },
          required: ['mode', 'provider'],
        },
        seed: {
          anyOf: [{ type: 'integer' }, { type: 'null' }],
          description: 'Seed of a reset without one; null where each draws its own',
        },
        active_sessions: { type: 'integer', minimum: 0 },
      },
      required: ['mode', 'backend', 'seed', 'active_sessions'],
    },
  });
}
