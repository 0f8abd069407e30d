import { type GpuMemory, msFromTicks, weightVariant } from '@servegym/simulator';
import { REQUEST_CLASSES, type RequestClass } from '../tasks.ts';
import type { RewardComponents } from './reward.ts';
import type { ServeEpisode } from './serve-episode.ts';
import type { ServeTask } from './serve-task.ts';

/** One class over the last window. Latencies in ms; 0 where there was none to measure. */
export interface ClassReport {
  readonly name: RequestClass;
  readonly arrived: number;
  readonly completed: number;
  readonly waiting: number;
  readonly running: number;
  readonly ttft_p50_ms: number;
  readonly ttft_p99_ms: number;
  readonly tpot_p50_ms: number;
  /** Share of the judged requests inside their objectives; `null` when none was judged. */
  readonly slo_compliance: number | null;
  readonly kv_blocks: number;
}

/** One GPU at the end of the last window. Memory in GiB. */
export interface GpuReport {
  readonly role: 'mixed' | 'prefill' | 'decode';
  readonly running: number;
  readonly waiting: number;
  readonly kv_blocks_used: number;
  readonly kv_blocks_total: number;
  readonly memory_gib: {
    readonly weights: number;
    readonly draft: number;
    readonly overhead: number;
    readonly kv_pool: number;
    readonly tenant: number;
    readonly limit: number;
  };
  /** True while it loads weights or restarts. */
  readonly reloading: boolean;
}

/** Details of a window for developers and the console, beyond the observation. Goes into `metadata`. */
export interface WindowReport {
  readonly window_s: number;
  /** Simulated time at the end of the window, s. */
  readonly window_end_s: number;
  readonly phase: string;
  readonly slo: Readonly<Record<RequestClass, { readonly ttft_ms: number; readonly tpot_ms: number }>>;
  readonly reward_components: RewardComponents;
  /** Benchmark accuracy that the weights retain, relative to FP16. */
  readonly quality: number;
  /** SLO violations of the window over its judged requests: a cost signal for constrained learning. */
  readonly slo_cost: number;
  readonly classes: readonly ClassReport[];
  readonly gpus: readonly GpuReport[];
  readonly events: readonly { readonly kind: string; readonly at_s: number; readonly gpu: number }[];
}

export function windowReport(episode: ServeEpisode): WindowReport {
  const { task, cluster, metrics, window } = episode;
  const end = window * task.windowSeconds;
  const running = runningByClass(episode);
  return {
    window_s: task.windowSeconds,
    window_end_s: end,
    phase: episode.phase,
    slo: sloReport(task),
    reward_components: episode.components,
    quality: weightVariant(episode.profile, episode.action.quantization_tier).quality,
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
        slo_compliance: of.judged === 0 ? null : of.attained / of.judged,
        kv_blocks: running[kind].kvBlocks,
      };
    }),
    gpus: cluster.engines.map((engine, gpu) => ({
      role: cluster.roleOf(gpu),
      running: engine.runningCount,
      waiting: engine.waitingCount,
      kv_blocks_used: engine.kvBlocksUsed,
      kv_blocks_total: engine.kvBlocksTotal,
      memory_gib: memoryReport(cluster.memoryOf(gpu)),
      reloading: engine.runningCount === 0 && msFromTicks(engine.now) / 1000 > end,
    })),
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

function memoryReport(memory: GpuMemory): GpuReport['memory_gib'] {
  const { weights, draft, overhead, kvPool, tenant, limit } = memory;
  return { weights, draft, overhead, kv_pool: kvPool, tenant, limit };
}

/** Objectives of each class, as reports have them. */
export function sloReport({ objectives }: ServeTask): WindowReport['slo'] {
  const objective = (kind: RequestClass) => ({
    ttft_ms: objectives[kind].ttftMs,
    tpot_ms: objectives[kind].tpotMs,
  });
  return {
    interactive: objective('interactive'),
    batch: objective('batch'),
    best_effort: objective('best_effort'),
  };
}
