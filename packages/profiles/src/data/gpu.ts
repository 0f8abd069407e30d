import { CalibrationError } from '../schema/calibration-error.ts';
import { FieldReader } from '../schema/field-reader.ts';
import { listPrice } from './gpu-prices.ts';
import { findNamed, idOf, type Named } from './named.ts';

/** GPUs with served loads behind the efficiencies of an engine. */
export const MEASURED_GPUS = ['a100', 'h100', 'l40s'] as const;
export type MeasuredGpu = (typeof MEASURED_GPUS)[number];

/** Specifications of a GPU, as far as the speed of serving depends on them. */
export interface Gpu extends Named {
  /** `<gpu>-<memory>` in lower case; the start of a profile's name. */
  readonly id: string;
  readonly vendor: 'NVIDIA' | 'AMD' | 'Intel' | 'other';
  /**
   * GPU whose efficiencies it is expected to have: with HBM, or GDDR6X without ECC, those of H100; with GDDR6 and ECC those of
   * L40S. A choice, and for other vendors than NVIDIA a guess.
   */
  readonly efficientAs: MeasuredGpu;
  /** As the driver reports it, which is less than the name says, GiB. */
  readonly memoryGiB: number;
  /** Dense BF16, TFLOPS. */
  readonly bf16Tflops: number;
  /** Dense FP8, TFLOPS; `null` where it does not multiply in FP8. */
  readonly fp8Tflops: number | null;
  /** Dense FP4, TFLOPS; `null` where it does not multiply in FP4. */
  readonly fp4Tflops: number | null;
  /** Memory bandwidth, GB/s (10^9 bytes). */
  readonly memoryGBps: number;
  /** Transfer to the next GPU of the same machine in one direction, GB/s: NVLink, Infinity Fabric, Ethernet, or PCIe. */
  readonly linkGBps: number;
  /** On-demand price, USD, see `gpu-prices.ts`. 0: not known. */
  readonly usdPerHour: number;
  /** Source of the speeds. */
  readonly source: string;
}

/**
 * Id, name, other names, vendor, efficiencies; memory; TFLOPS in BF16, FP8, FP4; memory and link bandwidth; data sheet.
 */
type Row = readonly [
  id: string,
  name: string,
  aliases: readonly string[],
  vendor: Gpu['vendor'],
  efficientAs: MeasuredGpu,
  memoryGiB: number,
  bf16Tflops: number,
  fp8Tflops: number | null,
  fp4Tflops: number | null,
  memoryGBps: number,
  linkGBps: number,
  source: string,
];

/** PCIe 4.0 and 5.0 with 16 lanes, as transfers between GPUs reach it: of 32 and 64 GB/s. */
const PCIE_4 = 25;
const PCIE_5 = 50;

/**
 * Speeds from data sheets, those with sparsity halved; memory as `torch.cuda.mem_get_info` answers, for AMD and Intel as
 * the data sheets say.
 */
// biome-ignore format: a table.
const ROWS: readonly Row[] = [
  ['a100-40gb', 'A100-40GB', ['A100'], 'NVIDIA', 'a100', 39.4, 312, null, null, 1555, 300, 'nvidia.com/en-us/data-center/a100'],
  ['a100-80gb', 'A100-80GB', ['A100 SXM 80GB'], 'NVIDIA', 'a100', 79.1, 312, null, null, 2039, 300, 'nvidia.com/en-us/data-center/a100'],
  ['a100-pcie-80gb', 'A100-PCIe-80GB', ['A100 PCIe'], 'NVIDIA', 'a100', 79.1, 312, null, null, 1935, PCIE_4, 'nvidia.com/en-us/data-center/a100'],
  ['a30-24gb', 'A30-24GB', ['A30'], 'NVIDIA', 'a100', 23.5, 165, null, null, 933, PCIE_4, 'nvidia.com/en-us/data-center/products/a30-gpu'],
  ['h100-80gb', 'H100-80GB', ['H100', 'H100 SXM'], 'NVIDIA', 'h100', 79.1, 989, 1979, null, 3350, 450, 'nvidia.com/en-us/data-center/h100'],
  ['h100-pcie-80gb', 'H100-PCIe-80GB', ['H100 PCIe'], 'NVIDIA', 'h100', 79.1, 756, 1513, null, 2000, 300, 'nvidia.com/en-us/data-center/h100'],
  ['h100-nvl-94gb', 'H100-NVL-94GB', ['H100 NVL'], 'NVIDIA', 'h100', 93.1, 835, 1671, null, 3938, 300, 'nvidia.com/en-us/data-center/h100'],
  ['h20-96gb', 'H20-96GB', ['H20'], 'NVIDIA', 'h100', 95.6, 148, 296, null, 4000, 450, 'figures of resellers: NVIDIA publishes none'],
  ['h200-141gb', 'H200-141GB', ['H200'], 'NVIDIA', 'h100', 139.8, 989, 1979, null, 4800, 450, 'nvidia.com/en-us/data-center/h200'],
  ['gh200-96gb', 'GH200-96GB', ['GH200'], 'NVIDIA', 'h100', 94.5, 989, 1979, null, 4000, 450, 'nvidia.com/en-us/data-center/grace-hopper-superchip'],
  ['b200-180gb', 'B200-180GB', ['B200'], 'NVIDIA', 'h100', 178.4, 2250, 4500, 9000, 8000, 900, 'nvidia.com/en-us/data-center/dgx-b200'],
  ['gb200-184gb', 'GB200-184GB', ['GB200'], 'NVIDIA', 'h100', 184, 2500, 5000, 10_000, 8000, 900, 'nvidia.com/en-us/data-center/gb200-nvl72'],
  ['b300-288gb', 'B300-288GB', ['B300'], 'NVIDIA', 'h100', 268, 2250, 4500, 13_500, 8000, 900, 'nvidia.com/en-us/data-center/dgx-b300'],
  ['l40s-48gb', 'L40S-48GB', ['L40S'], 'NVIDIA', 'l40s', 44.4, 362, 733, null, 864, PCIE_4, 'nvidia.com/en-us/data-center/l40s'],
  ['l40-48gb', 'L40-48GB', ['L40'], 'NVIDIA', 'l40s', 44.4, 181, 362, null, 864, PCIE_4, 'nvidia.com/en-us/data-center/l40'],
  ['l4-24gb', 'L4-24GB', ['L4'], 'NVIDIA', 'l40s', 22, 121, 242, null, 300, PCIE_4, 'nvidia.com/en-us/data-center/l4'],
  ['a10-24gb', 'A10-24GB', ['A10'], 'NVIDIA', 'l40s', 22, 125, null, null, 600, PCIE_4, 'nvidia.com/en-us/data-center/products/a10-gpu'],
  ['a10g-24gb', 'A10G-24GB', ['A10G'], 'NVIDIA', 'l40s', 22, 70, null, null, 600, PCIE_4, 'd1.awsstatic.com/product-marketing/ec2/NVIDIA_AWS_A10G_DataSheet_FINAL_02_17_2022.pdf'],
  ['a40-48gb', 'A40-48GB', ['A40'], 'NVIDIA', 'l40s', 44.4, 150, null, null, 696, PCIE_4, 'nvidia.com/en-us/data-center/a40'],
  ['rtx-a6000-48gb', 'RTX-A6000-48GB', ['RTX A6000', 'A6000'], 'NVIDIA', 'l40s', 47.5, 155, null, null, 768, 50, 'nvidia.com/en-us/design-visualization/rtx-a6000'],
  ['rtx-6000-ada-48gb', 'RTX-6000-Ada-48GB', ['RTX 6000 Ada'], 'NVIDIA', 'l40s', 47.4, 364, 729, null, 960, PCIE_4, 'nvidia.com/en-us/design-visualization/rtx-6000'],
  ['rtx-pro-6000-96gb', 'RTX-PRO-6000-96GB', ['RTX PRO 6000', 'RTX PRO 6000 Blackwell Server Edition'], 'NVIDIA', 'l40s', 95, 468, 936, 1871, 1792, PCIE_5, 'nvidia.com/en-us/data-center/rtx-pro-6000-blackwell-server-edition'],
  ['rtx3090-24gb', 'RTX3090-24GB', ['RTX3090', 'RTX 3090'], 'NVIDIA', 'h100', 23.6, 71, null, null, 936, PCIE_4, 'Ampere GA102 whitepaper'],
  ['rtx4090-24gb', 'RTX4090-24GB', ['RTX4090', 'RTX 4090'], 'NVIDIA', 'h100', 23.5, 165, 330, null, 1008, PCIE_4, 'Ada whitepaper'],
  ['rtx5090-32gb', 'RTX5090-32GB', ['RTX5090', 'RTX 5090'], 'NVIDIA', 'h100', 31.4, 209, 419, 1676, 1792, PCIE_5, 'RTX Blackwell whitepaper'],
  ['mi300x-192gb', 'MI300X-192GB', ['MI300X'], 'AMD', 'h100', 192, 1307, 2615, null, 5300, 448, 'amd.com/en/products/accelerators/instinct/mi300/mi300x.html'],
  ['mi325x-256gb', 'MI325X-256GB', ['MI325X'], 'AMD', 'h100', 256, 1307, 2615, null, 6000, 448, 'amd.com/en/products/accelerators/instinct/mi300/mi325x.html'],
  ['mi355x-288gb', 'MI355X-288GB', ['MI355X'], 'AMD', 'h100', 288, 2516, 5033, 10_066, 8000, 537, 'amd.com/en/products/accelerators/instinct/mi350/mi355x.html'],
  ['gaudi2-96gb', 'Gaudi2-96GB', ['Gaudi 2'], 'Intel', 'h100', 94.6, 432, 865, null, 2450, 262, 'intel.com/content/www/us/en/content-details/817486'],
  ['gaudi3-128gb', 'Gaudi3-128GB', ['Gaudi 3'], 'Intel', 'h100', 126.5, 1835, 1835, null, 3700, 525, 'intel.com/content/www/us/en/content-details/817486'],
  ['arc-pro-b60-24gb', 'Arc-Pro-B60-24GB', ['Arc Pro B60', 'B60'], 'Intel', 'l40s', 23.9, 98, null, null, 456, PCIE_4, 'intel.com/content/www/us/en/products/sku/243916'],
];

/** GPUs known by name. */
export const GPUS: readonly Gpu[] = ROWS.map(
  ([id, name, aliases, vendor, efficientAs, memoryGiB, bf16, fp8, fp4, memoryGBps, linkGBps, source]) => ({
    id,
    name,
    aliases,
    vendor,
    efficientAs,
    memoryGiB,
    bf16Tflops: bf16,
    fp8Tflops: fp8,
    fp4Tflops: fp4,
    memoryGBps,
    linkGBps,
    usdPerHour: listPrice(id)?.usdPerHour ?? 0,
    source,
  }),
);

/** The GPU that measurements or people call by this name. @throws {CalibrationError} listing those there are. */
export function findGpu(name: string): Gpu {
  return findNamed(GPUS, name, 'GPU');
}

/**
 * A GPU described in JSON: `name`, `memoryGiB`, `memoryGBps`, `bf16Tflops`, and, with the defaults none, none, 25, 0 and
 * `h100`: `fp8Tflops`, `fp4Tflops`, `linkGBps`, `usdPerHour`, `efficientAs`.
 *
 * @param source File name for the messages.
 * @throws {CalibrationError} when it is not JSON.
 * @throws {ProfileError} naming a field that is missing, unknown or out of range.
 */
export function parseGpu(text: string, source: string): Gpu {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new CalibrationError(
      'CALIBRATION_HARDWARE',
      `${source}: expected a GPU in JSON, got ${(error as SyntaxError).message}`,
    );
  }
  const fields = new FieldReader(source, '', value);
  const name = fields.text('name', /[a-z0-9]/i, 'a name such as H100-80GB');
  const gpu: Gpu = {
    id: idOf(name),
    name,
    aliases: [],
    vendor: 'other',
    efficientAs: fields.keys.includes('efficientAs') ? fields.choice('efficientAs', MEASURED_GPUS) : 'h100',
    memoryGiB: fields.number('memoryGiB', 1, 10_000),
    bf16Tflops: fields.number('bf16Tflops', 0.1, 1e6),
    fp8Tflops: fields.optionalNumber('fp8Tflops', 0.1, 1e6) ?? null,
    fp4Tflops: fields.optionalNumber('fp4Tflops', 0.1, 1e6) ?? null,
    memoryGBps: fields.number('memoryGBps', 1, 1e6),
    linkGBps: fields.optionalNumber('linkGBps', 0.1, 1e5) ?? PCIE_4,
    usdPerHour: fields.optionalNumber('usdPerHour', 0, 10_000) ?? 0,
    source,
  };
  fields.end();
  return gpu;
}
