import { REQUEST_CLASSES } from '../../tasks.ts';
import type { RewardComponents } from '../reward.ts';
import { sloReport } from '../window-report.ts';
import type { PlayedWindow } from './play-window.ts';
import type { RealEpisode, RealServer } from './real-episode.ts';
import { percentile, type RealWindowFigures } from './real-window.ts';
import type { AppliedAction } from './server-controls.ts';
import type { ClientPrecision } from './warm-up.ts';

/** Figures of the observation that not every server tells. */
export type UnobservedFigure =
  | 'kv_cache_occupancy'
  | 'gpu_memory_used_gb'
  | 'estimated_cost_per_1k'
  | 'spec_acceptance_rate'
  | 'eviction_events';

interface ReportedWindow {
  readonly applied: AppliedAction;
  readonly notObserved: readonly UnobservedFigure[];
  readonly components: RewardComponents;
  readonly played: PlayedWindow;
  readonly figures: RealWindowFigures;
  readonly precision: ClientPrecision | null;
}

/** Details of a window in real mode, for `metadata`: those of a simulated window, and what the server told. */
export type RealReport = ReturnType<typeof realReport>;

/** Report of the last window of an episode. */
export function realReport(
  { settings, model, client }: RealServer,
  { task, window, phase }: RealEpisode,
  { applied, notObserved, components, played, figures, precision }: ReportedWindow,
) {
  return {
    mode: 'real' as const,
    provider: settings.provider,
    model,
    window_s: task.windowSeconds,
    window_end_s: window * task.windowSeconds,
    phase,
    slo: sloReport(task),
    reward_components: components,
    /** Benchmark accuracy that the weights retain; `null` when the server does not tell. */
    quality: applied.endpoint?.quality ?? null,
    slo_cost: 1 - figures.sloCompliance,
    classes: REQUEST_CLASSES.map((name, kind) => {
      const own = figures.classes[kind];
      return {
        name,
        arrived: own.sent,
        completed: own.completed,
        waiting: 0,
        running: 0,
        ttft_p50_ms: percentile(own.ttftMs, 50),
        ttft_p99_ms: percentile(own.ttftMs, 99),
        tpot_p50_ms: percentile(own.tpotMs, 50),
        slo_compliance: own.sent === 0 ? null : own.attained / own.sent,
        kv_blocks: 0,
      };
    }),
    gpus: [],
    events: [],
    /** Place where each knob acts, and those without effect with the reason. */
    applied: applied.applied,
    not_applied: applied.notApplied,
    /** Figures of the observation that are 0 because nobody measures them. */
    not_observed: notObserved,
    requests: {
      /** That the task has in this window. */
      in_task: played.arrivals,
      sent: played.requests.length,
      completed: figures.completed,
      /** Counts, and texts of the first failure, by outcome. */
      failed: figures.failures,
      errors: Object.fromEntries(
        figures.firstFailures.map((failure) => [failure.outcome, client.describe(failure)]),
      ),
      retries: figures.retries,
    },
    tokens: { prompt: figures.promptTokens, completion: figures.completionTokens },
    cost_usd: figures.cost,
    /** Optional fields that the server refused and that are no longer sent, each with the server's sentence. */
    refused_fields: Object.fromEntries(client.refusedFields),
    /** Mean measured TTFT less the mean that the server reports, ms; `null` when it reports none for these requests. */
    ttft_overhead_ms: precision?.ttftOverheadMs ?? null,
  };
}
