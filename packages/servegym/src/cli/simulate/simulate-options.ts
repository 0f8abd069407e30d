import type {
  EngineProfile,
  PrefillDecodeSplit,
  RouterPolicy,
  ServingChange,
  SimulationOptions,
} from '@servegym/simulator';
import { type EngineOptions, runningLimit } from '../arguments/engine-options.ts';
import type { TraceArguments } from '../arguments/trace-arguments.ts';

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
