import { REQUEST_CLASSES } from '../../tasks.ts';
import type { RewardComponents } from '../reward.ts';
import type { ServeKnob } from '../schema.ts';
import { type ClassReport, sloReport, type WindowReport } from '../window-report.ts';
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

/** Details of a window in real mode, for `metadata`. */
export interface RealReport extends Omit<WindowReport, 'quality'> {
  readonly mode: 'real';
  readonly provider: string;
  readonly model: string;
  /** Benchmark accuracy that the weights retain; `null` when the server does not tell. */
  readonly quality: number | null;
  /** Place where each knob acts. */
  readonly applied: AppliedAction['applied'];
  /** Knobs without effect, and why. */
  readonly not_applied: Partial<Record<ServeKnob, string>>;
  /** Figures of the observation that are 0 because nobody measures them. */
  readonly not_observed: readonly UnobservedFigure[];
  readonly requests: {
    /** That the task has in this window. */
    readonly in_task: number;
    readonly sent: number;
    readonly completed: number;
    /** By outcome. */
    readonly failed: Readonly<Record<string, number>>;
    /** Text of the first failure of each outcome. */
    readonly errors: Readonly<Record<string, string>>;
    readonly retries: number;
  };
  readonly tokens: { readonly prompt: number; readonly completion: number };
  readonly cost_usd: number | null;
  /** Optional fields that the server refused and that are no longer sent, each with the server's sentence. */
  readonly refused_fields: Readonly<Record<string, string>>;
  /** Mean measured TTFT less the mean that the server reports, ms; `null` when it reports none for these requests. */
  readonly ttft_overhead_ms: number | null;
}

interface ReportedWindow {
  readonly applied: AppliedAction;
  readonly notObserved: readonly UnobservedFigure[];
  readonly components: RewardComponents;
  readonly played: PlayedWindow;
  readonly figures: RealWindowFigures;
  readonly precision: ClientPrecision | null;
}

/** Report of the last window of an episode. */
export function realReport(
  { settings, model, client }: RealServer,
  { task, window, phase }: RealEpisode,
  { applied, notObserved, components, played, figures, precision }: ReportedWindow,
): RealReport {
  return {
    mode: 'real',
    provider: settings.provider,
    model,
    window_s: task.windowSeconds,
    window_end_s: window * task.windowSeconds,
    phase,
    slo: sloReport(task),
    reward_components: components,
    quality: applied.endpoint?.quality ?? null,
    slo_cost: 1 - figures.sloCompliance,
    classes: REQUEST_CLASSES.map((name, kind): ClassReport => {
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
    applied: applied.applied,
    not_applied: applied.notApplied,
    not_observed: notObserved,
    requests: {
      in_task: played.arrivals,
      sent: played.requests.length,
      completed: figures.completed,
      failed: figures.failures,
      errors: Object.fromEntries(
        figures.firstFailures.map((failure) => [failure.outcome, client.describe(failure)]),
      ),
      retries: figures.retries,
    },
    tokens: { prompt: figures.promptTokens, completion: figures.completionTokens },
    cost_usd: figures.cost,
    refused_fields: Object.fromEntries(client.refusedFields),
    ttft_overhead_ms: precision?.ttftOverheadMs ?? null,
  };
}
