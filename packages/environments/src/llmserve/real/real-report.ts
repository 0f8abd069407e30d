import type { RewardComponents } from '../reward.ts';
import type { ServeKnob } from '../schema.ts';
import { REQUEST_CLASSES, type RequestClass, type ServeTask } from '../tasks/serve-task.ts';
import type { ClassReport, WindowReport } from '../window-report.ts';
import type { PlayedWindow } from './play-window.ts';
import type { RealClient } from './real-client.ts';
import type { RealSettings } from './real-settings.ts';
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

/** What real mode tells of a window beyond the observation; goes into `metadata`. */
export interface RealReport extends Omit<WindowReport, 'quality'> {
  readonly mode: 'real';
  readonly provider: string;
  readonly model: string;
  /** Benchmark accuracy that the weights retain; `null` when the server does not tell. */
  readonly quality: number | null;
  /** Where each knob acts. */
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
  readonly task: ServeTask;
  readonly settings: RealSettings;
  readonly model: string;
  readonly window: number;
  readonly phase: string;
  readonly applied: AppliedAction;
  readonly notObserved: readonly UnobservedFigure[];
  readonly components: RewardComponents;
  readonly played: PlayedWindow;
  readonly figures: RealWindowFigures;
  readonly precision: ClientPrecision | null;
  readonly client: RealClient;
}

export function realReport(reported: ReportedWindow): RealReport {
  const { task, settings, applied, played, figures, client } = reported;
  const objective = (kind: RequestClass) => {
    const { ttftMs, tpotMs } = task.objectives[kind];
    return { ttft_ms: ttftMs, tpot_ms: tpotMs };
  };
  return {
    mode: 'real',
    provider: settings.provider,
    model: reported.model,
    window_s: task.windowSeconds,
    window_end_s: reported.window * task.windowSeconds,
    phase: reported.phase,
    slo: {
      interactive: objective('interactive'),
      batch: objective('batch'),
      best_effort: objective('best_effort'),
    },
    reward_components: reported.components,
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
    not_observed: reported.notObserved,
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
    ttft_overhead_ms: reported.precision?.ttftOverheadMs ?? null,
  };
}
