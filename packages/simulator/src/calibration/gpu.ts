import { findNamed, type Named } from './named.ts';

/** GPUs with served loads behind the efficiencies of an engine. */
export type MeasuredGpu = 'a100' | 'h100' | 'l40s';

/** What a GPU is made of, as far as the speed of serving depends on it. */
export interface Gpu extends Named {
  /** `<gpu>-<memory>` in lower case; the start of a profile's name. */
  readonly id: string;
  /**
   * GPU whose efficiencies it is expected to have: with HBM, or GDDR6X without ECC, those of H100; with GDDR6 and ECC those of
   * L40S. A choice.
   */
  readonly efficientAs: MeasuredGpu;
  /** As CUDA reports it, which is less than the name says, GiB. */
  readonly memoryGiB: number;
  /** Dense BF16, TFLOPS. */
  readonly bf16Tflops: number;
  /** Whether it multiplies in FP8. */
  readonly hasFp8: boolean;
  /** Whether it multiplies in FP4. */
  readonly hasFp4: boolean;
  /** Memory bandwidth, GB/s (10^9 bytes). */
  readonly memoryGBps: number;
  /** KV transfer to the next GPU of the same machine, GB/s. */
  readonly linkGBps: number;
  /** Usual on-demand price, USD. */
  readonly usdPerHour: number;
}

/** Speeds from NVIDIA's data sheets; memory as `torch.cuda.mem_get_info` answers; prices of 2025 cloud lists. */
export const GPUS: readonly Gpu[] = [
  gpu('a100-40gb', 'a100', 'A100-40GB', ['A100'], 39.4, 312, false, 1555, 300, 1.3),
  gpu('a100-80gb', 'a100', 'A100-80GB', [], 79.1, 312, false, 2039, 300, 1.8),
  gpu('h100-80gb', 'h100', 'H100-80GB', ['H100'], 79.1, 989, true, 3350, 450, 3),
  gpu('h100-pcie-80gb', 'h100', 'H100-PCIe-80GB', ['H100 PCIe'], 79.1, 756, true, 2000, 300, 2.5),
  gpu('h20-96gb', 'h100', 'H20-96GB', ['H20'], 95.6, 148, true, 4000, 450, 2),
  gpu('h200-141gb', 'h100', 'H200-141GB', ['H200'], 139.8, 989, true, 4800, 450, 3.8),
  gpu('gh200-96gb', 'h100', 'GH200-96GB', ['GH200'], 94.5, 989, true, 4000, 450, 3.2),
  gpu('b200-180gb', 'h100', 'B200-180GB', ['B200'], 178.4, 2250, true, 8000, 900, 6),
  gpu('l40s-48gb', 'l40s', 'L40S-48GB', ['L40S'], 44.4, 362, true, 864, 25, 1),
  gpu('l4-24gb', 'l40s', 'L4-24GB', ['L4'], 22, 121, true, 300, 25, 0.7),
  gpu('a10-24gb', 'l40s', 'A10-24GB', ['A10'], 22, 125, false, 600, 25, 0.75),
  gpu('rtx-a6000-48gb', 'l40s', 'RTX-A6000-48GB', ['RTX A6000', 'A6000'], 47.5, 155, false, 768, 50, 0.8),
  gpu('rtx3090-24gb', 'h100', 'RTX3090-24GB', ['RTX3090', 'RTX 3090'], 23.6, 71, false, 936, 25, 0.3),
  gpu('rtx4090-24gb', 'h100', 'RTX4090-24GB', ['RTX4090', 'RTX 4090'], 23.5, 165, true, 1008, 25, 0.5),
];

function gpu(
  id: string,
  efficientAs: MeasuredGpu,
  name: string,
  aliases: readonly string[],
  memoryGiB: number,
  bf16Tflops: number,
  hasFp8: boolean,
  memoryGBps: number,
  linkGBps: number,
  usdPerHour: number,
): Gpu {
  return {
    id,
    efficientAs,
    name,
    aliases,
    memoryGiB,
    bf16Tflops,
    hasFp8,
    hasFp4: id.startsWith('b'),
    memoryGBps,
    linkGBps,
    usdPerHour,
  };
}

/** The GPU that measurements or people call by this name. @throws {CalibrationError} listing those there are. */
export function findGpu(name: string): Gpu {
  return findNamed(GPUS, name, 'GPU');
}
