import { amountOf, fields, list, number, numbers, record, text } from '../api/read-fields.ts';
import type { Fields } from '../api/wire.ts';

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

const gpu = record({
  role: (value) => text(value) ?? 'mixed',
  running: amountOf,
  waiting: amountOf,
  kvBlocksUsed: amountOf,
  kvBlocksTotal: amountOf,
  reloading: (value) => value === true,
});

/** Limits of a class. */
const limits = record({ ttftMs: number, tpotMs: number });

export type ClassTelemetry = ReturnType<typeof classTelemetry>;
export type GpuMemory = ReturnType<typeof gpuMemory>;
export type GpuTelemetry = ReturnType<typeof gpuTelemetry>;

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

/** Metadata of llmserve beside the observation. Fields that a server leaves out are absent. */
export type Telemetry = ReturnType<typeof readTelemetry>;

/** Reads the metadata of a reset or a step without trusting its shape. */
export function readTelemetry(metadata: Fields) {
  return {
    windowSeconds: number(metadata.window_s),
    phase: text(metadata.phase) ?? text(fields(metadata.workload).phase),
    /** 0..1: quality of the answers at the current precision. */
    quality: number(metadata.quality),
    /** Limits by class, in the server's order. */
    slo: Object.entries(fields(metadata.slo)).map(([name, of]): ClassSlo => ({ name, ...limits(of) })),
    /** Signed parts that sum to the reward. */
    rewardParts: numbers(metadata.reward_components),
    classes: list(metadata.classes).map(classTelemetry),
    gpus: list(metadata.gpus).map(gpuTelemetry),
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
