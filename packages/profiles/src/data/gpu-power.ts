import { idOf } from './named.ts';

/**
 * Most power that a GPU's board takes, W, by `Gpu.id`: TDP or total board power of the data sheets that `GPUS` names. That
 * of GH200 is the module's with its CPU. An engine takes less: no power under load is known for these GPUs.
 */
const BOARD_WATTS: Readonly<Record<string, number>> = {
  'a100-40gb': 400,
  'a100-80gb': 400,
  'a100-pcie-80gb': 300,
  'a30-24gb': 165,
  'h100-80gb': 700,
  'h100-pcie-80gb': 350,
  'h100-nvl-94gb': 400,
  'h20-96gb': 400,
  'h200-141gb': 700,
  'gh200-96gb': 1000,
  'b200-180gb': 1000,
  'gb200-184gb': 1200,
  'b300-288gb': 1100,
  'l40s-48gb': 350,
  'l40-48gb': 300,
  'l4-24gb': 72,
  'a10-24gb': 150,
  'a10g-24gb': 300,
  'a40-48gb': 300,
  'rtx-a6000-48gb': 300,
  'rtx-6000-ada-48gb': 300,
  'rtx-pro-6000-96gb': 600,
  'rtx3090-24gb': 350,
  'rtx4090-24gb': 450,
  'rtx5090-32gb': 575,
  'mi300x-192gb': 750,
  'mi325x-256gb': 1000,
  'mi355x-288gb': 1400,
  'gaudi2-96gb': 600,
  'gaudi3-128gb': 900,
  'arc-pro-b60-24gb': 200,
};

/** Most power of the board of a GPU, W; `null` where it is not known. */
export function boardWatts(gpuName: string): number | null {
  return BOARD_WATTS[idOf(gpuName)] ?? null;
}
