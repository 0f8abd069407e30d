import type { EngineProfile } from '@servegym/simulator';
import { z } from 'zod';
import { checked, choice, fields, numberFrom, parseJson, textLike } from '../schema/read-json.ts';
import gpus from './gpus.json' with { type: 'json' };
import { findNamed, idOf, type Named } from './named.ts';

/** GPUs with served loads behind the efficiencies of an engine. */
const MEASURED_GPUS = ['a100', 'h100', 'l40s'] as const;

/** PCIe 4.0 with 16 lanes, as transfers between GPUs reach it: of 32 GB/s. */
const PCIE_4 = 25;

/** A GPU in a file, as far as the speed of serving depends on it. */
const gpuFile = fields({
  name: textLike(/[a-z0-9]/i, 'a name such as H100-80GB'),
  /**
   * GPU whose efficiencies it is expected to have: with HBM, or GDDR6X without ECC, those of H100; with GDDR6 and ECC those of
   * L40S. A choice, and for other vendors than NVIDIA a guess.
   */
  efficientAs: choice(MEASURED_GPUS).default('h100'),
  /** As the driver reports it, which is less than the name says, GiB. */
  memoryGiB: numberFrom(1, 10_000),
  /** Dense BF16, TFLOPS. */
  bf16Tflops: numberFrom(0.1, 1e6),
  /** Dense FP8, TFLOPS; `null` where it does not multiply in FP8. */
  fp8Tflops: numberFrom(0.1, 1e6).nullable().default(null),
  /** Dense FP4, TFLOPS; `null` where it does not multiply in FP4. */
  fp4Tflops: numberFrom(0.1, 1e6).nullable().default(null),
  /** Memory bandwidth, GB/s (10^9 bytes). */
  memoryGBps: numberFrom(1, 1e6),
  /** Transfer to the next GPU of the same machine in one direction, GB/s: NVLink, Infinity Fabric, Ethernet, or PCIe. */
  linkGBps: numberFrom(0.1, 1e5).default(PCIE_4),
  /** On-demand price, USD, that of the list. 0: not known. */
  usdPerHour: numberFrom(0, 10_000).default(0),
});

/** A GPU by its specifications. Its id is `<gpu>-<memory>` in lower case: the start of a profile's name. */
export interface Gpu extends Named, Readonly<z.infer<typeof gpuFile>> {
  readonly vendor: 'NVIDIA' | 'AMD' | 'Intel' | 'other';
  /** Source of the speeds. */
  readonly source: string;
}

/** Price of a GPU in a public list. */
interface ListedPrice {
  readonly usdPerHour: number;
  /** Provider and, where they differ by it, product or region. */
  readonly provider: string;
  /** When the list was read: year, month, day as far as known. */
  readonly date: string;
}

/** A row of `gpus.json`; the README says where its figures come from. */
interface GpuRow extends Omit<Gpu, 'usdPerHour'> {
  /** Most power that the board takes, W. */
  readonly boardWatts: number;
  /** `spot`: of capacity that the provider may take back; `null`: none known. */
  readonly price: (ListedPrice & { readonly spot: ListedPrice | null }) | null;
}

const ROWS = gpus as readonly GpuRow[];

/** GPUs known by name. */
export const GPUS: readonly Gpu[] = ROWS.map(({ boardWatts: _, price, ...gpu }) => ({
  ...gpu,
  usdPerHour: price?.usdPerHour ?? 0,
}));

/** The GPU that measurements or people call by this name. @throws {ProfileError} listing those there are. */
export function findGpu(name: string): Gpu {
  return findNamed(GPUS, name, 'GPU');
}

function rowOf(gpuName: string): GpuRow | undefined {
  return ROWS.find(({ id }) => id === idOf(gpuName));
}

/** Most power of the board of a GPU, W; `null` where it is not known. */
export function boardWatts(gpuName: string): number | null {
  return rowOf(gpuName)?.boardWatts ?? null;
}

/** List price of a GPU by its name or id; `null`: none known. */
export function listPrice(gpuName: string): GpuRow['price'] {
  return rowOf(gpuName)?.price ?? null;
}

/**
 * A GPU described in JSON: `name`, `memoryGiB`, `memoryGBps`, `bf16Tflops`, and, with the defaults none, none, 25, 0 and
 * `h100`: `fp8Tflops`, `fp4Tflops`, `linkGBps`, `usdPerHour`, `efficientAs`.
 *
 * @param source File name for the messages.
 * @throws {ProfileError} when it is not JSON, or naming a field that is missing, unknown or out of range.
 */
export function parseGpu(text: string, source: string): Gpu {
  const gpu = checked(gpuFile, parseJson(text, source, 'CALIBRATION_HARDWARE', 'a GPU in JSON'), source);
  return { ...gpu, id: idOf(gpu.name), aliases: [], vendor: 'other', source };
}

/** Prices of one's own, USD an hour, by the id of the GPU's name. */
export type GpuPrices = ReadonlyMap<string, number>;

const pricesFile = z.record(z.string(), numberFrom(0, 10_000), { error: 'an object' });

/**
 * Prices in JSON, `{"H100-80GB": 2.5}`.
 * @param source File name for the messages.
 * @throws {ProfileError} when it is not JSON, or naming a price that is not one.
 */
export function parsePrices(text: string, source: string): GpuPrices {
  const expected = 'prices in JSON, such as {"H100-80GB": 2.5}';
  const prices = checked(pricesFile, parseJson(text, source, 'CALIBRATION_HARDWARE', expected), source);
  return new Map(Object.entries(prices).map(([name, usdPerHour]) => [idOf(name), usdPerHour]));
}

export interface PriceSource {
  readonly own: GpuPrices;
  readonly isSpot: boolean;
  /** Whether the table of list prices counts where `own` has none. */
  readonly useTable: boolean;
}

/** Price of a GPU by its name, by default the list price, and who says so; `undefined`: none known. */
export function priceOf(
  name: string,
  { own, isSpot, useTable }: PriceSource = { own: new Map(), isSpot: false, useTable: true },
): { readonly usdPerHour: number; readonly source: string } | undefined {
  const mine = own.get(idOf(name));
  if (mine !== undefined) return { usdPerHour: mine, source: '--prices' };
  const listed = useTable ? listPrice(name) : null;
  const price = isSpot ? listed?.spot : listed;
  if (!price) return undefined;
  const { usdPerHour, provider, date } = price;
  return { usdPerHour, source: `${provider}, ${isSpot ? 'spot, ' : ''}${date}` };
}

/** A profile at the list price of its GPU, where one is known: profiles that lasting results rest on keep older prices. */
export function atListPrice(profile: EngineProfile): EngineProfile {
  const { usdPerHour } = priceOf(profile.gpu.name) ?? profile.gpu;
  return { ...profile, gpu: { ...profile.gpu, usdPerHour } };
}
