import {
  amountOf,
  type Fields,
  fields,
  list,
  number,
  numbers,
  type Outcome,
  type PlayedStep,
  record,
  text,
} from '../api/wire.ts';

/** One window of an episode as the page shows it. Frame 0 is the reset, without an action and its driver. */
export interface Frame extends Outcome, Partial<Pick<PlayedStep, 'action' | 'explanation'>> {
  readonly index: number;
  /** Driver that chose the action. */
  readonly driver?: string;
  readonly telemetry: Telemetry;
  /** Sum of the rewards up to here. */
  readonly totalReward: number;
}

export function firstFrame({ observation, metadata, done }: Outcome): Frame {
  const telemetry = readTelemetry(metadata);
  return { index: 0, observation, metadata, reward: null, done, telemetry, totalReward: 0 };
}

export function nextFrame(previous: Frame, step: PlayedStep, driver?: string): Frame {
  return {
    ...step,
    index: previous.index + 1,
    driver,
    telemetry: readTelemetry(step.metadata),
    totalReward: previous.totalReward + (step.reward ?? 0),
  };
}

/** Names under which other environments of LLM servers observe the same quantity, in the same unit. */
const SYNONYMS: Readonly<Record<string, string>> = {
  request_arrival_rate: 'arrival_rate',
  mean_prompt_length: 'mean_prompt_len',
  p50_ttft_ms: 'ttft_p50',
  p50_itl_ms: 'tpot_p50',
  spec_acceptance_rate: 'spec_accept_rate',
};

/** Names under which the metrics of a window, beside its observation, tell what the observation does not. */
const METRICS: Readonly<Record<string, string>> = {
  throughput_tps: 'tokens_per_sec',
  p99_ttft_ms: 'ttft_p99_ms',
  eviction_events: 'eviction_events',
};

/** The field of the observation that holds a quantity, by its own name or a synonym. */
export function fieldNamed(observation: Fields, name: string): string | undefined {
  if (name in observation) return name;
  const synonym = SYNONYMS[name];
  return synonym !== undefined && synonym in observation ? synonym : undefined;
}

/** A numeric quantity of the observation; `undefined` when the server does not give it. */
export function observed({ observation, metadata }: Frame, name: string): number | undefined {
  const field = fieldNamed(observation, name);
  if (field !== undefined) return number(observation[field]);
  // The share inside the SLO, where the server tells the share outside.
  if (name !== 'slo_compliance_rate')
    return name in METRICS ? number(fields(metadata.metrics)[METRICS[name]]) : undefined;
  const violations = number(observation.slo_violation_rate);
  return violations === undefined ? undefined : 1 - violations;
}

const classTelemetry = record({
  name: (value) => text(value) ?? 'requests',
  waiting: amountOf,
  running: amountOf,
  kvBlocks: amountOf,
  arrived: number,
  ttftP99Ms: number,
  tpotP50Ms: number,
  /** 0..1. */
  sloCompliance: number,
  // Of a class of a fleet.
  inFlight: amountOf,
  refused: amountOf,
  completed: amountOf,
  attained: amountOf,
});

/** GiB. */
const gpuMemory = record({
  weights: amountOf,
  overhead: amountOf,
  draft: amountOf,
  kvPool: amountOf,
  tenant: amountOf,
  limit: amountOf,
});

/** What a GPU and a replica of a fleet tell of their engine. */
const engine = {
  role: (value: unknown) => text(value) ?? 'mixed',
  running: amountOf,
  waiting: amountOf,
  kvBlocksUsed: amountOf,
  kvBlocksTotal: amountOf,
};
const gpu = record({ ...engine, reloading: (value) => value === true });
const replica = record({
  ...engine,
  id: amountOf,
  /** The page knows `starting`, `ready` and `draining`. */
  state: (value) => text(value) ?? 'ready',
  /** Seconds until it serves. */
  readyInS: amountOf,
  /** Requests that the router sent to it in the window; absent where the server does not tell. */
  routed: number,
  /** Share of the admitted prompt tokens that its cache had, 0..1. */
  prefixCacheHitRate: number,
});

export type ClassTelemetry = ReturnType<typeof classTelemetry>;
export type GpuMemory = ReturnType<typeof gpuMemory>;
export type GpuTelemetry = ReturnType<typeof gpuTelemetry>;
export type ReplicaTelemetry = ReturnType<typeof replicaTelemetry>;

export interface ClassSlo {
  readonly name: string;
  readonly ttftMs?: number;
  readonly tpotMs?: number;
}

/** Something that happened to a GPU; the kinds that the page knows are `oom`, `reload` and `drain_started`. */
export interface ServerEvent {
  readonly kind: string;
  /** Simulated time since the start of the episode. */
  readonly atSeconds?: number;
}

/** Metadata of llmserve and of a fleet beside the observation. Fields that a server leaves out are absent. */
type Telemetry = ReturnType<typeof readTelemetry>;

/** Reads the metadata of a reset or a step without trusting its shape. */
export function readTelemetry(metadata: Fields) {
  const failures = list(metadata.events).filter(({ kind }) => kind === 'failed');
  const failed = new Set(failures.map((event) => event.replica));
  return {
    windowSeconds: number(metadata.window_s),
    phase: text(metadata.phase) ?? text(fields(metadata.workload).phase),
    /** 0..1: quality of the answers at the current precision. */
    quality: number(metadata.quality),
    /** Limits by class, in the server's order. */
    slo: Object.entries(fields(metadata.slo ?? metadata.objectives)).map(sloOf),
    /** Signed parts that sum to the reward. */
    rewardParts: numbers(metadata.reward_components),
    classes: list(metadata.classes).map(classTelemetry),
    gpus: list(metadata.gpus).map(gpuTelemetry),
    /** Replicas that are billed; only a fleet has some. */
    replicas: Array.isArray(metadata.replicas)
      ? list(metadata.replicas).map((entry) => replicaTelemetry(entry, failed))
      : undefined,
    events: [
      ...(metadata.out_of_memory === true ? [{ kind: 'oom' }] : []),
      ...list(metadata.events).map((event) => ({
        kind: text(event.kind) ?? 'event',
        atSeconds: number(event.at_s),
      })),
    ] as readonly ServerEvent[],
  };
}

function gpuTelemetry(entry: Fields) {
  const memory = fields(entry.memory_gib);
  return { ...gpu(entry), memory: number(memory.limit) === undefined ? undefined : gpuMemory(memory) };
}

function replicaTelemetry(entry: Fields, failed: ReadonlySet<unknown>) {
  const told = replica(entry);
  return {
    ...told,
    /** It failed in the window. */
    hasFailed: failed.has(entry.id),
    /** 0..1 */
    kvUse: told.kvBlocksTotal > 0 ? told.kvBlocksUsed / told.kvBlocksTotal : 0,
  };
}

/** A fleet names the limits of its objectives as its tasks do. */
function sloOf([name, given]: [string, unknown]): ClassSlo {
  const of = fields(given);
  return { name, ttftMs: number(of.ttft_ms ?? of.ttftMs), tpotMs: number(of.tpot_ms ?? of.tpotMs) };
}
