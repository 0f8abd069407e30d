import { type Cluster, LatencyHistogram, msFromTicks, NOT_YET, weightVariant } from '@servegym/simulator';
import { percentileOfSorted } from '@servegym/simulator/statistics';
import { Column } from '../column.ts';
import { REQUEST_CLASSES } from '../tasks.ts';
import type { EpisodeRequests } from './episode-requests.ts';
import type { ServeEpisode } from './serve-episode.ts';
import type { ServeTask } from './serve-task.ts';

/** A sorted list of latencies of one window, built up and reused. */
class Latencies {
  readonly #values = new Column(new Float64Array());
  #sorted = true;

  clear(): void {
    this.#values.length = 0;
    this.#sorted = true;
  }

  push(ms: number): void {
    this.#values.push(ms);
    this.#sorted = false;
  }

  /** 0 when there are none. */
  percentile(q: number): number {
    const { values } = this.#values;
    if (values.length === 0) return 0;
    if (!this.#sorted) values.sort();
    this.#sorted = true;
    return percentileOfSorted(values, q);
  }
}

class ClassMetrics {
  arrived = 0;
  completed = 0;
  waiting = 0;
  /** Requests judged: completed, refused, or waiting past their TTFT objective. */
  judged = 0;
  /** Judged requests inside their objectives. */
  attained = 0;
  /** Requests that have finished, or were refused, outside their objectives. */
  violations = 0;
  /** Times to first token; a request that still waits for it counts with its wait so far. */
  readonly ttft = new Latencies();
  readonly tpot = new Latencies();

  clear(): void {
    this.arrived = this.completed = this.waiting = 0;
    this.judged = this.attained = this.violations = 0;
    this.ttft.clear();
    this.tpot.clear();
  }
}

/** Measurements of one window, read off the cluster's logs. One object, reused. */
export class WindowMetrics {
  readonly classes: readonly ClassMetrics[] = REQUEST_CLASSES.map(() => new ClassMetrics());
  readonly ttft = new Latencies();
  readonly interTokenLatency = new LatencyHistogram();
  arrived = 0;
  promptTokensArrived = 0;
  completed = 0;
  rejected = 0;
  outputTokens = 0;
  preemptions = 0;
  draftTokens = 0;
  acceptedTokens = 0;
  /** Output tokens of the requests that wait for their first token or for recomputation. */
  owedTokens = 0;

  /** Reads what `cluster` has logged since its logs were cleared. `end` is the window's last tick. */
  collect(cluster: Cluster, requests: EpisodeRequests, task: ServeTask, window: number, end: number): void {
    for (const metrics of this.classes) metrics.clear();
    this.ttft.clear();
    this.interTokenLatency.clear();
    this.arrived = this.promptTokensArrived = this.completed = this.rejected = 0;
    this.outputTokens = this.preemptions = this.draftTokens = this.acceptedTokens = this.owedTokens = 0;
    for (let id = requests.windowStarts[window]; id < requests.windowStarts[window + 1]; id++) {
      this.arrived++;
      this.promptTokensArrived += requests.inputTokens[id];
      this.classes[requests.classes[id]].arrived++;
    }
    for (const engine of cluster.engines) {
      const { completions, firstTokens, counters } = engine;
      this.outputTokens += counters.outputTokens;
      this.preemptions += counters.preemptions;
      this.completed += counters.completed;
      this.rejected += counters.rejected;
      this.draftTokens += counters.draftTokens;
      this.acceptedTokens += counters.acceptedTokens;
      this.interTokenLatency.merge(engine.interTokenLatency);

      for (let i = 0; i < firstTokens.count; i++) {
        const ms = msFromTicks(firstTokens.firstTokens[i] - firstTokens.arrivals[i]);
        this.ttft.push(ms);
        this.classes[requests.classes[firstTokens.ids[i]]].ttft.push(ms);
      }
      for (let i = 0; i < completions.count; i++) {
        const first = completions.firstTokens[i];
        const kind = requests.classes[completions.ids[i]];
        const gaps = completions.outputs[i] - 1;
        const tpot = gaps > 0 ? msFromTicks(completions.lastTokens[i] - first) / gaps : 0;
        const objective = task.objectives[REQUEST_CLASSES[kind]];
        const attained =
          msFromTicks(first - completions.arrivals[i]) <= objective.ttftMs && tpot <= objective.tpotMs;
        this.#judge(kind, attained);
        this.classes[kind].completed++;
        if (gaps > 0) this.classes[kind].tpot.push(tpot);
      }
      for (const id of engine.rejections) this.#judge(requests.classes[id], false);
      engine.forEachWaiting((id, arrival, firstToken) => {
        const kind = requests.classes[id];
        const metrics = this.classes[kind];
        metrics.waiting++;
        this.owedTokens += requests.outputTokens[id];
        if (firstToken !== NOT_YET) return;
        const wait = msFromTicks(end - arrival);
        this.ttft.push(Math.max(0, wait));
        metrics.ttft.push(Math.max(0, wait));
        // Whoever waits past the objective is violated now, and judged again when served.
        if (wait > task.objectives[REQUEST_CLASSES[kind]].ttftMs) metrics.judged++;
      });
    }
  }

  /** Share of the judged requests inside their objectives, by the weights of their classes; 1 when none was judged. */
  sloCompliance(weightOf: (name: (typeof REQUEST_CLASSES)[number]) => number = () => 1): number {
    let judged = 0;
    let attained = 0;
    for (const [kind, metrics] of this.classes.entries()) {
      const weight = weightOf(REQUEST_CLASSES[kind]);
      judged += weight * metrics.judged;
      attained += weight * metrics.attained;
    }
    return judged === 0 ? 1 : attained / judged;
  }

  #judge(kind: number, attained: boolean): void {
    const metrics = this.classes[kind];
    metrics.judged++;
    if (attained) metrics.attained++;
    else metrics.violations++;
  }
}

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
export function sloReport({ objectives: { interactive, batch, best_effort } }: ServeTask) {
  const of = ({ ttftMs, tpotMs }: typeof batch) => ({ ttft_ms: ttftMs, tpot_ms: tpotMs });
  return { interactive: of(interactive), batch: of(batch), best_effort: of(best_effort) };
}
