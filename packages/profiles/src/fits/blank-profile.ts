import type { EngineProfile, IterationLaw } from '@servegym/simulator';
import type { Gpu } from '../data/gpu.ts';
import { groupKvBytesPerToken, type ServedModel } from '../data/served-model.ts';
import { eagleDraft } from './eagle-draft.ts';

export const BLOCK_TOKENS = 16;
/** vLLM's default share of the GPU. */
const UTILIZATION = 0.9;
/** Memory of activations and CUDA graphs in the runs whose pool size is known, GiB. */
const OVERHEAD_GIB = 1.2;
/**
 * A cold start: initialisation and CUDA graphs, and reading the checkpoint from a local disk, GB/s. Restarts of vLLM take
 * 30 to 120 s, the less the smaller the model; the two parts are a choice within that range.
 */
const START_SECONDS = 30;
const DISK_GBPS = 2;
/**
 * Bandwidth of PCIe 4.0 x16, a choice on the safe side for newer hosts. With it a change of precision takes 0.5 to 6 s, as
 * sleep and wake of vLLM do (0.1 to 6 s).
 */
const HOST_CHECKPOINTS = { linkGBps: 25, wakeSeconds: 0.5 };
const TRANSFER_SETUP_MS = 1;

/** End of the names of profiles with an FP8 KV cache. */
export const FP8_KV_SUFFIX = '-fp8kv';

export interface BlankProfileOptions {
  readonly gpu: Gpu;
  readonly model: ServedModel;
  readonly count: number;
  readonly engine: EngineProfile['engine'];
  readonly law: IterationLaw;
  readonly requestOverheadMs: number;
  /** Default 1.2 GiB a GPU. */
  readonly memoryOverheadGiB?: number;
  readonly status: EngineProfile['status'];
  readonly source: string;
}

/** A profile with what follows from GPU and model alone, and one law for 16-bit weights. */
export function blankProfile(options: BlankProfileOptions): EngineProfile {
  const { gpu, model, count, engine, law, memoryOverheadGiB = OVERHEAD_GIB, status, source } = options;
  return {
    name: `${gpu.id}-${model.id}${count === 1 ? '' : `-tp${count}`}`,
    gpu: { name: gpu.name, memoryGiB: gpu.memoryGiB, count, usdPerHour: gpu.usdPerHour },
    model: { name: model.name, kvBytesPerToken: groupKvBytesPerToken(model, count) },
    engine,
    status,
    source,
    fit: null,
    validity: { batch: [1, 1], contextTokens: [1, 1] },
    memory: { utilization: UTILIZATION, overheadGiB: memoryOverheadGiB, blockTokens: BLOCK_TOKENS },
    requestOverheadMs: options.requestOverheadMs,
    reloadSeconds: START_SECONDS + Math.round((2 * model.parameters) / (DISK_GBPS * 1e9)),
    hostCheckpoints: HOST_CHECKPOINTS,
    weights: {
      FP16: {
        weightGiB: Number(((2 * model.parameters) / 2 ** 30 / count).toPrecision(4)),
        law,
        status,
        source,
        quality: 1,
      },
    },
    speculation: eagleDraft(gpu, model, count),
    transfer: { gigabytesPerSecond: gpu.linkGBps, setupMs: TRANSFER_SETUP_MS },
  };
}
