import type {
  EngineProfile,
  PrefillDecodeSplit,
  RouterPolicy,
  ServingChange,
  SimulationOptions,
} from '@servegym/simulator';
import { type EngineOptions, runningLimit } from '../arguments/engine-options.ts';
import type { TraceArguments } from '../arguments/trace-arguments.ts';
import { InputError } from '../input-error.ts';

/** Options of `servegym simulate`. */
export interface SimulateOptions extends TraceArguments, EngineOptions {
  readonly profile: string;
  readonly trace?: string;
  readonly rateScale: number;
  readonly limit?: number;
  readonly repeatTo?: number;
  readonly closedBatch?: number;
  readonly concurrency?: number;
  readonly requests?: number;
  readonly lengthRange?: number;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly replicas: number;
  readonly router: RouterPolicy;
  readonly prefixCaching: boolean;
  readonly kvOffloadingSize?: number;
  readonly kvOffloadingBandwidth?: number;
  readonly acceptance?: string;
  readonly kvBlocks?: number;
  readonly priorityShares?: readonly number[];
  readonly split?: PrefillDecodeSplit;
  readonly change?: readonly ServingChange[];
  readonly tenant?: readonly ServingChange[];
  readonly chromeTrace?: string;
  readonly requestsFile?: string;
  readonly seed: number;
  readonly json: boolean;
}

/** As transfers over PCIe 4.0 with 16 lanes reach, GB/s. */
const HOST_GBPS = 25;

/**
 * A profile with the KV offloading that the options ask for.
 * @throws InputError for a bandwidth without a size.
 */
export function withHostKv(profile: EngineProfile, options: SimulateOptions): EngineProfile {
  const { kvOffloadingSize: sizeGiB = profile.hostKv?.sizeGiB, kvOffloadingBandwidth } = options;
  if (sizeGiB === undefined) {
    if (kvOffloadingBandwidth === undefined) return profile;
    throw new InputError('--kv-offloading-bandwidth needs --kv-offloading-size, or a profile with hostKv');
  }
  const gigabytesPerSecond = kvOffloadingBandwidth ?? profile.hostKv?.gigabytesPerSecond ?? HOST_GBPS;
  return { ...profile, hostKv: { sizeGiB, gigabytesPerSecond } };
}

/** Options of the replicas. */
export function replicaOptions(profile: EngineProfile, options: SimulateOptions): SimulationOptions {
  const { weights, maxNumBatchedTokens, kvBudgetFraction, kvBlocks, speculationDepth } = options;
  const { acceptance, prefixCaching, policy, replicas, split, router, seed, concurrency } = options;
  const maxNumSeqs = runningLimit(options);
  return {
    ...{ profile, weights, maxNumSeqs, maxNumBatchedTokens, kvBudgetFraction, kvBlocks, speculationDepth },
    ...{ acceptance, prefixCaching, schedulingPolicy: policy, router, seed, concurrency },
    ...(split === undefined ? { replicas } : { split }),
  };
}
