import {
  type EngineProfile,
  type ServingConfig,
  SimulatorError,
  WEIGHT_PRECISIONS,
  weightVariant,
} from '@servegym/simulator';
import { z } from 'zod';
import type { LiveServer } from '../live/live-server.ts';
import { ApiError, readBody } from './api-error.ts';
import type { EndpointApp } from './openai-routes.ts';

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

/** Their names in the configuration. */
const SETTINGS = {
  max_num_seqs: 'maxNumSeqs',
  kv_budget_fraction: 'kvBudgetFraction',
  speculation_depth: 'speculationDepth',
  weights: 'weights',
  split: 'split',
  scheduling_policy: 'schedulingPolicy',
} as const satisfies Record<keyof z.infer<typeof servingKnobs>, keyof ServingConfig>;
const NAMES = Object.keys(SETTINGS) as (keyof typeof SETTINGS)[];
