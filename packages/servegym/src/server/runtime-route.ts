import type { RealSettings } from '@servegym/environments';
import type { OpenEnvServer } from '@servegym/openenv';
import { z } from 'zod';

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
