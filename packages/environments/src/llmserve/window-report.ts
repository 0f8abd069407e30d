import { msFromTicks, weightVariant } from '@servegym/simulator';
import { REQUEST_CLASSES } from '../tasks.ts';
import type { ServeEpisode } from './serve-episode.ts';
import type { ServeTask } from './serve-task.ts';

/** Details of a window for developers and the console, beyond the observation. Goes into `metadata`. */
export type WindowReport = ReturnType<typeof windowReport>;

/** Report of the last window. Times in s, latencies in ms, 0 where there was none to measure; memory in GiB. */
export function windowReport(episode: ServeEpisode) {
  const { task, cluster, metrics, window } = episode;
  const end = window * task.windowSeconds;
  const running = runningByClass(episode);
  return {
    window_s: task.windowSeconds,
    window_end_s: end,
    phase: episode.phase,
    slo: sloReport(task),
    reward_components: episode.components,
    /** Benchmark accuracy that the weights retain, relative to FP16. */
    quality: weightVariant(episode.profile, episode.action.quantization_tier).quality,
    /** SLO violations of the window over its judged requests: a cost signal for constrained learning. */
    slo_cost: 1 - metrics.sloCompliance(),
    classes: REQUEST_CLASSES.map((name, kind) => {
      const of = metrics.classes[kind];
      return {
        name,
        arrived: of.arrived,
        completed: of.completed,
        waiting: of.waiting,
        running: running[kind].requests,
        ttft_p50_ms: of.ttft.percentile(50),
        ttft_p99_ms: of.ttft.percentile(99),
        tpot_p50_ms: of.tpot.percentile(50),
        /** Share of the judged requests inside their objectives; `null` when none was judged. */
        slo_compliance: of.judged === 0 ? null : of.attained / of.judged,
        kv_blocks: running[kind].kvBlocks,
      };
    }),
    gpus: cluster.engines.map((engine, gpu) => {
      const { weights, draft, overhead, kvPool, tenant, limit } = cluster.memoryOf(gpu);
      return {
        role: cluster.roleOf(gpu),
        running: engine.runningCount,
        waiting: engine.waitingCount,
        kv_blocks_used: engine.kvBlocksUsed,
        kv_blocks_total: engine.kvBlocksTotal,
        memory_gib: { weights, draft, overhead, kv_pool: kvPool, tenant, limit },
        /** True while it loads weights or restarts. */
        reloading: engine.runningCount === 0 && msFromTicks(engine.now) / 1000 > end,
      };
    }),
    events: cluster.events.map(({ kind, at, gpu }) => ({ kind, at_s: msFromTicks(at) / 1000, gpu })),
  };
}

/** Running requests by class. */
function runningByClass({ cluster, requests }: ServeEpisode): { requests: number; kvBlocks: number }[] {
  const running = REQUEST_CLASSES.map(() => ({ requests: 0, kvBlocks: 0 }));
  for (const engine of cluster.engines) {
    engine.forEachRunning((id, _arrival, _firstToken, kvBlocks) => {
      const ofClass = running[requests.classes[id]];
      ofClass.requests++;
      ofClass.kvBlocks += kvBlocks;
    });
  }
  return running;
}

/** Objectives of each class, as reports have them. */
export function sloReport({ objectives }: ServeTask) {
  const objective = ({ ttftMs, tpotMs }: (typeof objectives)['batch']) => ({
    ttft_ms: ttftMs,
    tpot_ms: tpotMs,
  });
  return {
    interactive: objective(objectives.interactive),
    batch: objective(objectives.batch),
    best_effort: objective(objectives.best_effort),
  };
}
