import { fields, list, number, numbers, text } from '../api/read-fields.ts';
import type { Fields } from '../api/wire.ts';

/** Metadata of llmserve beside the observation. Fields that a server leaves out are absent. */
export interface Telemetry {
  readonly windowSeconds?: number;
  readonly phase?: string;
  /** 0..1: quality of the answers at the current precision. */
  readonly quality?: number;
  /** Limits by class, in the server's order. */
  readonly slo: readonly ClassSlo[];
  /** Signed parts that sum to the reward. */
  readonly rewardParts: Readonly<Record<string, number>>;
  readonly classes: readonly ClassTelemetry[];
  readonly gpus: readonly GpuTelemetry[];
  readonly events: readonly ServerEvent[];
}

export interface ClassSlo {
  readonly name: string;
  readonly ttftMs?: number;
  readonly tpotMs?: number;
}

export interface ClassTelemetry {
  readonly name: string;
  readonly waiting: number;
  readonly running: number;
  readonly kvBlocks: number;
  readonly arrived?: number;
  readonly completed?: number;
  readonly ttftP99Ms?: number;
  readonly tpotP50Ms?: number;
  /** 0..1. */
  readonly sloCompliance?: number;
}

export interface GpuTelemetry {
  readonly role: string;
  readonly running: number;
  readonly waiting: number;
  readonly kvBlocksUsed: number;
  readonly kvBlocksTotal: number;
  readonly memory?: GpuMemory;
  readonly reloading: boolean;
}

/** GiB. */
export interface GpuMemory {
  readonly weights: number;
  readonly overhead: number;
  readonly draft: number;
  readonly kvPool: number;
  readonly tenant: number;
  readonly limit: number;
}

/** Something that happened to a GPU; the kinds that the page knows are `oom`, `reload` and `drain_started`. */
export interface ServerEvent {
  readonly kind: string;
  /** Simulated time since the start of the episode. */
  readonly atSeconds?: number;
}

/** Reads the metadata of a reset or a step without trusting its shape. */
export function readTelemetry(metadata: Fields): Telemetry {
  return {
    windowSeconds: number(metadata.window_s),
    phase: text(metadata.phase) ?? text(fields(metadata.workload).phase),
    quality: number(metadata.quality),
    slo: Object.entries(fields(metadata.slo)).map(([name, limits]) => ({
      name,
      ttftMs: number(fields(limits).ttft_ms),
      tpotMs: number(fields(limits).tpot_ms),
    })),
    rewardParts: numbers(metadata.reward_components),
    classes: list(metadata.classes).map(classTelemetry),
    gpus: list(metadata.gpus).map(gpuTelemetry),
    events: [
      ...(metadata.out_of_memory === true ? [{ kind: 'oom' }] : []),
      ...list(metadata.events).map((event) => ({
        kind: text(event.kind) ?? 'event',
        atSeconds: number(event.at_s),
      })),
    ],
  };
}

function classTelemetry(entry: Fields): ClassTelemetry {
  return {
    name: text(entry.name) ?? 'requests',
    waiting: number(entry.waiting) ?? 0,
    running: number(entry.running) ?? 0,
    kvBlocks: number(entry.kv_blocks) ?? 0,
    arrived: number(entry.arrived),
    completed: number(entry.completed),
    ttftP99Ms: number(entry.ttft_p99_ms),
    tpotP50Ms: number(entry.tpot_p50_ms),
    sloCompliance: number(entry.slo_compliance),
  };
}

function gpuTelemetry(entry: Fields): GpuTelemetry {
  const memory = fields(entry.memory_gib);
  const limit = number(memory.limit);
  return {
    role: text(entry.role) ?? 'mixed',
    running: number(entry.running) ?? 0,
    waiting: number(entry.waiting) ?? 0,
    kvBlocksUsed: number(entry.kv_blocks_used) ?? 0,
    kvBlocksTotal: number(entry.kv_blocks_total) ?? 0,
    reloading: entry.reloading === true,
    memory:
      limit === undefined
        ? undefined
        : {
            weights: number(memory.weights) ?? 0,
            overhead: number(memory.overhead) ?? 0,
            draft: number(memory.draft) ?? 0,
            kvPool: number(memory.kv_pool) ?? 0,
            tenant: number(memory.tenant) ?? 0,
            limit,
          },
  };
}
