import { fields, list, number, numbers, text } from '../api/read-fields.ts';
import type { Fields } from '../api/wire.ts';

/** Metadata of a window of `fleet`. */
export interface FleetReport {
  readonly classes: readonly FleetClassReport[];
  readonly replicas: readonly ReplicaReport[];
  /** Requests at the gateway that no replica can take. */
  readonly held: number;
  /** Parts of the reward, USD. */
  readonly rewardUsd: Readonly<Record<string, number>>;
}

export interface FleetClassReport {
  readonly name: string;
  readonly arrived: number;
  readonly inFlight: number;
  readonly refused: number;
  readonly completed: number;
  readonly attained: number;
  readonly ttftP99Ms?: number | undefined;
  /** Limits of the class, ms. */
  readonly ttftMs?: number | undefined;
  readonly tpotMs?: number | undefined;
}

export interface ReplicaReport {
  readonly id: number;
  /** The page knows `starting`, `ready` and `draining`. */
  readonly state: string;
  readonly role: string;
  /** Seconds until it serves. */
  readonly readyInSeconds: number;
  /** Requests that the router sent to it in the window; absent where the server does not tell. */
  readonly routed?: number | undefined;
  readonly running: number;
  readonly waiting: number;
  /** Share of the admitted prompt tokens that its cache had, 0..1. */
  readonly prefixHits?: number | undefined;
  /** It failed in the window. */
  readonly hasFailed: boolean;
  /** 0..1 */
  readonly kvUse: number;
}

const reports = new WeakMap<Fields, FleetReport>();

/** Reads the metadata of a window without trusting its shape. `undefined` where it is not that of a fleet. */
export function fleetReport(metadata: Fields): FleetReport | undefined {
  if (!Array.isArray(metadata.replicas)) return undefined;
  const known = reports.get(metadata);
  if (known) return known;
  const objectives = fields(metadata.objectives);
  const failures = list(metadata.events).filter(({ kind }) => kind === 'failed');
  const failed = new Set(failures.map(({ replica }) => replica));
  const report = {
    classes: list(metadata.classes).map((entry) => classReport(entry, objectives)),
    replicas: list(metadata.replicas).map((entry) => replicaReport(entry, failed)),
    held: number(metadata.held) ?? 0,
    rewardUsd: numbers(metadata.reward_components),
  };
  reports.set(metadata, report);
  return report;
}

/** Share of the answered and refused requests that met their objectives; `undefined` without any. */
export function attainmentOf({ classes }: FleetReport): number | undefined {
  const judged = classes.reduce((sum, { completed, refused }) => sum + completed + refused, 0);
  return judged === 0 ? undefined : classes.reduce((sum, { attained }) => sum + attained, 0) / judged;
}

function classReport(entry: Fields, objectives: Fields): FleetClassReport {
  const name = text(entry.name) ?? 'requests';
  const limits = fields(objectives[name]);
  return {
    name,
    arrived: number(entry.arrived) ?? 0,
    inFlight: number(entry.in_flight) ?? 0,
    refused: number(entry.refused) ?? 0,
    completed: number(entry.completed) ?? 0,
    attained: number(entry.attained) ?? 0,
    ttftP99Ms: number(entry.ttft_p99_ms),
    ttftMs: number(limits.ttftMs),
    tpotMs: number(limits.tpotMs),
  };
}

function replicaReport(entry: Fields, failed: ReadonlySet<unknown>): ReplicaReport {
  const total = number(entry.kv_blocks_total) ?? 0;
  return {
    id: number(entry.id) ?? 0,
    state: text(entry.state) ?? 'ready',
    role: text(entry.role) ?? 'mixed',
    readyInSeconds: number(entry.ready_in_s) ?? 0,
    routed: number(entry.routed),
    running: number(entry.running) ?? 0,
    waiting: number(entry.waiting) ?? 0,
    prefixHits: number(entry.prefix_cache_hit_rate),
    hasFailed: failed.has(entry.id),
    kvUse: total > 0 ? (number(entry.kv_blocks_used) ?? 0) / total : 0,
  };
}
