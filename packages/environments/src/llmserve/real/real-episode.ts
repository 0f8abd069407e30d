import { EnvironmentError } from '@servegym/openenv/definition';
import { findProfile } from '@servegym/profiles';
import { REQUEST_CLASSES } from '../../tasks.ts';
import { drawRequests, type EpisodeRequests } from '../episode-requests.ts';
import {
  OBSERVED_FIGURES,
  type ObservedFigure,
  type ServeAction,
  type ServeObservation,
  type ServerDescription,
} from '../schema.ts';
import { type RewardComponents, rewardComponents, totalReward } from '../serve-episode.ts';
import type { ServeTask } from '../serve-task.ts';
import { describeServer, relativeFigures } from '../server-description.ts';
import { ServerEstimate, type ServerReading } from '../server-estimate.ts';
import { sloReport } from '../window-metrics.ts';
import {
  type PlayedWindow,
  percentile,
  playWindow,
  type RealWindowFigures,
  windowFigures,
} from './play-window.ts';
import { failureCode, type RealClient } from './real-client.ts';
import type { RealSettings } from './real-settings.ts';
import type { AppliedAction, ServerControls, VllmReading } from './server-controls.ts';
import { type ClientPrecision, clientPrecision } from './warm-up.ts';

const BYTES_PER_GIB = 2 ** 30;

const NOTHING_SEEN = Object.fromEntries(OBSERVED_FIGURES.map((name) => [name, 0])) as Record<
  ObservedFigure,
  number
>;

/** A real server that has answered. */
export interface RealServer {
  readonly settings: RealSettings;
  readonly client: RealClient;
  readonly controls: ServerControls;
  readonly model: string;
  /** `null` where it was not measured. */
  readonly precision: ClientPrecision | null;
}

/** An episode of `llmserve` whose windows are played at a real server, in wall time. */
export class RealEpisode {
  readonly task: ServeTask;
  readonly seed: number;
  readonly requests: EpisodeRequests;
  /** Windows played. */
  window = 0;
  readonly totals = { requestsServed: 0, sloViolations: 0, reward: 0 };
  readonly #server: RealServer;
  /** The server that the task supposes. */
  readonly #supposed: ServerDescription;
  /** Describes the server where nobody has said which profile it has. */
  readonly #estimate: ServerEstimate | null;
  #seen: Readonly<Record<ObservedFigure, number>>;
  /** Memory of the KV pool, GB; 0 when the server does not tell. */
  #kvPoolGb = 0;
  /** Details of the last window; before the first, of the server. */
  report: RealReport | ReturnType<typeof serverReport>;

  /** @param begun whether a profile was named, how the server took the default action, and its reading, where it tells */
  constructor(
    task: ServeTask,
    seed: number,
    server: RealServer,
    begun: {
      readonly hasProfile: boolean;
      readonly applied: AppliedAction;
      readonly reading: VllmReading | null;
    },
  ) {
    const { hasProfile, applied, reading } = begun;
    this.task = task;
    this.seed = seed;
    this.#server = server;
    this.requests = drawRequests(task, seed);
    this.#supposed = describeServer(task, findProfile(task.profile), reading?.engines);
    this.#estimate = hasProfile ? null : new ServerEstimate(task);
    if (reading) this.#estimate?.see(task.defaultAction, { ...reading, itlMs: 0, seen: NOTHING_SEEN });
    // Nothing has been measured before the first window.
    const { qualityValue } = task.phases[this.requests.phases[0]];
    this.#seen = { ...NOTHING_SEEN, slo_compliance_rate: 1, quality_value: qualityValue };
    this.report = serverReport(server, applied, server.precision);
  }

  get done(): boolean {
    return this.window >= this.task.windows;
  }

  /** Name of the phase of the last window, or of the first before it. */
  get phase(): string {
    return this.task.phases[this.requests.phases[Math.max(0, this.window - 1)]].name;
  }

  /** The server over the last window, as an agent sees it. */
  observation(): ServeObservation {
    const { task } = this;
    const server = this.#estimate?.description ?? this.#supposed;
    return {
      ...this.#seen,
      ...{ step_index: this.window, task_id: task.id },
      relative: relativeFigures(this.#seen, server, task, this.#kvPoolGb),
      server,
    };
  }

  /**
   * Plays a window. Answers its reward; when it throws, the window counts as not played.
   * @throws EnvironmentError `REAL_SERVER_UNREACHABLE` when no request got through, `REAL_SERVER_REFUSED` when the
   *   server refused all of them or its knobs, `REAL_CLOSED` when the session ended meanwhile
   */
  async step(action: ServeAction, signal: AbortSignal): Promise<number> {
    const { settings, client, controls, model } = this.#server;
    const applied = await controls.apply(action, signal);
    const before = await controls.read(signal);
    let after: VllmReading | null = null;
    const played = await playWindow(
      client,
      settings,
      {
        task: this.task,
        requests: this.requests,
        seed: this.seed,
        window: this.window,
        applied,
        model,
        async onWindowEnd() {
          after = await controls.read(signal);
        },
      },
      signal,
    );
    if (signal.aborted) {
      throw new EnvironmentError('REAL_CLOSED', 'The session was closed while the window was played.');
    }
    requireAnswers(played, client);
    const figures = windowFigures(played, this.task, settings, applied, { before, after });
    const answers = played.requests.map(({ answer }) => answer);
    const ended = { before, after: await controls.read(signal) };
    const precision = clientPrecision(answers, ended, settings.timeScale);
    const shown = serverReading(played, { ...ended, atEnd: after });
    if (shown) this.#estimate?.see(inForce(action, applied), shown);
    return this.#settle({ played, figures, applied, precision }, after);
  }

  #settle(measured: MeasuredWindow, reading: VllmReading | null): number {
    const { played, figures, applied } = measured;
    const { task } = this;
    const phase = task.phases[this.requests.phases[this.window]];
    const { completionTokens, owedTokens, cost } = figures;
    const costPer1k = cost === null ? null : completionTokens === 0 ? cost : (cost / completionTokens) * 1000;
    const components: RewardComponents = rewardComponents(
      {
        servedShare: completionTokens === 0 ? 0 : completionTokens / (completionTokens + owedTokens),
        sloAttainment: figures.weightedSloAttainment,
        // Memory and quality that the server tells nothing of are neither charged for nor rewarded.
        memoryShare:
          meanOf(applied, ({ weights, draft, kv_pool, limit }) => (weights + draft + kv_pool) / limit) ?? 0,
        costShare: costPer1k === null ? 0 : Math.min(1, costPer1k / task.referenceCostPer1k),
        qualityLoss: 1 - (applied.endpoint?.quality ?? 1),
        qualityValue: phase.qualityValue,
      },
      task.reward,
    );
    const reward = totalReward(components);
    this.window++;
    this.totals.requestsServed += figures.completed;
    this.totals.sloViolations += figures.classes.reduce(
      (sum, { sent, attained }) => sum + sent - attained,
      0,
    );
    this.totals.reward += reward;

    const notObserved: UnobservedFigure[] = [];
    const observed = (name: UnobservedFigure, value: number | null): number => {
      if (value === null) notObserved.push(name);
      return value ?? 0;
    };
    this.#seen = {
      queue_depth: played.heldBack + (reading?.waiting ?? 0),
      active_requests: reading?.running ?? played.inFlight,
      kv_cache_occupancy: observed(
        'kv_cache_occupancy',
        reading === null ? null : Math.min(1, reading.kvUsage),
      ),
      mean_prompt_length: figures.meanPromptTokens,
      p50_ttft_ms: percentile(figures.ttftMs, 50),
      p99_ttft_ms: percentile(figures.ttftMs, 99),
      p50_itl_ms: percentile(figures.itlMs, 50),
      throughput_tps: figures.throughputTps,
      slo_compliance_rate: figures.sloCompliance,
      gpu_memory_used_gb: observed(
        'gpu_memory_used_gb',
        meanGb(applied, ({ weights, draft, overhead, kv_pool }) => weights + draft + overhead + kv_pool),
      ),
      estimated_cost_per_1k: observed('estimated_cost_per_1k', costPer1k),
      request_arrival_rate: played.requests.length / task.windowSeconds,
      spec_acceptance_rate: observed('spec_acceptance_rate', figures.draftAcceptance),
      eviction_events: observed('eviction_events', figures.preemptions),
      quality_value: phase.qualityValue,
    };
    const told = ((reading?.kvTokens ?? 0) * this.#supposed.kv_bytes_per_token) / 1e9;
    this.#kvPoolGb = meanGb(applied, ({ kv_pool }) => kv_pool) ?? told;
    this.report = realReport(this.#server, this, { ...measured, notObserved, components });
    return reward;
  }
}

/** What a knob without an effect amounts to. */
const NEUTRAL = {
  kv_budget_fraction: 1,
  speculation_depth: 0,
  quantization_tier: 'FP16',
  prefill_decode_split: false,
} as const satisfies Partial<ServeAction>;

/** An action without the effects of knobs that the server has no route for. */
function inForce(action: ServeAction, { notApplied }: AppliedAction): ServeAction {
  const neutral = Object.entries(NEUTRAL).filter(([knob]) => knob in notApplied);
  return { ...action, ...Object.fromEntries(neutral) };
}

/** A window by the server's own counters, which count everybody's requests; `null` where there are none, or no requests. */
function serverReading(
  { elapsedSeconds }: PlayedWindow,
  { before, atEnd, after }: Record<'before' | 'atEnd' | 'after', VllmReading | null>,
): ServerReading | null {
  if (!before || !atEnd || !after || after.ttftCount === before.ttftCount) return null;
  const since = (of: (reading: VllmReading) => number) => of(after) - of(before);
  const requests = since((reading) => reading.ttftCount);
  const drafts = since((reading) => reading.draftTokens);
  const gaps = since((reading) => reading.itlCount);
  return {
    ...after,
    itlMs: (1000 * since((reading) => reading.itlSumS)) / Math.max(1, gaps),
    seen: {
      gpu_memory_used_gb: 0,
      ...{ queue_depth: atEnd.waiting, active_requests: atEnd.running, kv_cache_occupancy: atEnd.kvUsage },
      p50_ttft_ms: (1000 * since((reading) => reading.ttftSumS)) / requests,
      mean_prompt_length: since((reading) => reading.promptTokens) / requests,
      throughput_tps: since((reading) => reading.generationTokens) / elapsedSeconds,
      request_arrival_rate: requests / elapsedSeconds,
      spec_acceptance_rate: since((reading) => reading.acceptedTokens) / Math.max(1, drafts),
    },
  };
}

function requireAnswers({ requests }: PlayedWindow, client: RealClient): void {
  const first = requests[0]?.answer.failure;
  const code = first && failureCode(first);
  if (!code || requests.some(({ answer: { failure } }) => !failure || failureCode(failure) !== code)) return;
  const ending = `All ${requests.length} requests of the window failed, so that it counts as not played: step again`;
  throw new EnvironmentError(code, `${client.describe(first)}. ${ending}`);
}

type EngineMemory = NonNullable<AppliedAction['endpoint']>['engines'][number]['memory_gib'];

/** A figure of the memory as a mean over the engines; `null` when the server does not tell. */
function meanOf({ endpoint }: AppliedAction, figure: (memory: EngineMemory) => number): number | null {
  if (endpoint === null || endpoint.engines.length === 0) return null;
  const sum = endpoint.engines.reduce((total, { memory_gib }) => total + figure(memory_gib), 0);
  return sum / endpoint.engines.length;
}

/** The same of an amount in GiB, GB. */
function meanGb(applied: AppliedAction, gib: (memory: EngineMemory) => number): number | null {
  const mean = meanOf(applied, gib);
  return mean === null ? null : (mean * BYTES_PER_GIB) / 1e9;
}

/** Figures of the observation that not every server tells. */
type UnobservedFigure =
  | 'kv_cache_occupancy'
  | 'gpu_memory_used_gb'
  | 'estimated_cost_per_1k'
  | 'spec_acceptance_rate'
  | 'eviction_events';

interface MeasuredWindow {
  readonly played: PlayedWindow;
  readonly figures: RealWindowFigures;
  readonly applied: AppliedAction;
  readonly precision: ClientPrecision | null;
}

interface ReportedWindow extends MeasuredWindow {
  readonly notObserved: readonly UnobservedFigure[];
  readonly components: RewardComponents;
}

/** What the server is, and what it takes, for `metadata`. */
function serverReport(
  { settings, model, client }: RealServer,
  { applied, notApplied }: AppliedAction,
  precision: ClientPrecision | null,
) {
  return {
    mode: 'real' as const,
    provider: settings.provider,
    model,
    /** Place where each knob acts, and those without effect with the reason. */
    applied,
    not_applied: notApplied,
    /** Optional fields that the server refused and that are no longer sent, each with the server's sentence. */
    refused_fields: Object.fromEntries(client.refusedFields),
    /** Mean measured TTFT less the mean that the server reports, ms; `null` when it reports none for these requests. */
    ttft_overhead_ms: precision?.ttftOverheadMs ?? null,
  };
}

/** Details of a window in real mode, for `metadata`: those of a simulated window, and what the server told. */
export type RealReport = ReturnType<typeof realReport>;

function realReport(
  server: RealServer,
  { task, window, phase }: RealEpisode,
  { applied, notObserved, components, played, figures, precision }: ReportedWindow,
) {
  return {
    ...serverReport(server, applied, precision),
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
        figures.firstFailures.map((failure) => [failure.outcome, server.client.describe(failure)]),
      ),
      retries: figures.retries,
    },
    tokens: { prompt: figures.promptTokens, completion: figures.completionTokens },
    cost_usd: figures.cost,
  };
}
