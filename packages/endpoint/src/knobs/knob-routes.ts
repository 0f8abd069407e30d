import { type EngineProfile, weightVariant } from '@servegym/simulator';
import type { LiveServer } from '../live/live-server.ts';
import { ApiError } from '../openai/api-error.ts';
import type { EndpointApp } from '../openai/openai-routes.ts';
import { readBody } from '../openai/read-body.ts';
import { configOf, knobsOf, servingKnobs } from './serving-knobs.ts';

/** Errors of the simulator that say which setting does not fit the profile. */
const SETTING_ERRORS = new Set([
  'EngineError',
  'ProfileVariantError',
  'AcceptanceTableError',
  'SimulationError',
]);

/** `GET /admin/knobs` returns the settings and their effects; `PATCH /admin/knobs` changes those that it names. */
export function mountKnobRoutes(app: EndpointApp, live: LiveServer, profile: EngineProfile): void {
  app.get('/admin/knobs', (context) => context.json(report()));

  app.patch('/admin/knobs', async (context) => {
    const changes = await readBody(context, servingKnobs);
    try {
      live.configure(configOf({ ...knobsOf(live.server.servingConfig), ...changes }));
    } catch (error) {
      if (!(error instanceof Error) || !SETTING_ERRORS.has(error.name)) throw error;
      throw new ApiError(400, 'invalid_value', error.message);
    }
    return context.json(report());
  });

  function report(): object {
    const { server } = live;
    const { weights } = server.servingConfig;
    return {
      knobs: knobsOf(server.servingConfig),
      profile: profile.name,
      time_scale: live.clock.timeScale,
      /** Benchmark accuracy that the weights retain, relative to FP16. */
      quality: weightVariant(profile, weights).quality,
      /** Of all GPUs of all engines. */
      usd_per_hour: server.engines.length * profile.gpu.count * profile.gpu.usdPerHour,
      draining: server.draining,
      engines: server.engines.map((engine, index) => {
        const { weights: weightGiB, draft, overhead, kvPool, limit } = server.memoryOf(index);
        return {
          role: server.roleOf(index),
          running: engine.runningCount,
          waiting: engine.waitingCount,
          kv_blocks_used: engine.kvBlocksUsed,
          kv_blocks_total: engine.kvBlocksTotal,
          memory_gib: { weights: weightGiB, draft, overhead, kv_pool: kvPool, limit },
          reloading: live.isReloading(index),
        };
      }),
    };
  }
}
