import { CalibrationError } from '../schema/calibration-error.ts';
import { FieldReader } from '../schema/field-reader.ts';
import { idOf } from './named.ts';

/** Price of a GPU in a public list, USD an hour. */
export interface GpuPrice {
  /** `Gpu.id`. */
  readonly gpu: string;
  readonly usdPerHour: number;
  /** Provider and, where they differ by it, product or region. */
  readonly provider: string;
  /** When the list was read: year, month, day as far as known. */
  readonly date: string;
  /** Capacity that the provider may take back; `null`: no list price known. */
  readonly spot: Omit<GpuPrice, 'gpu' | 'spot'> | null;
}

const RUNPOD = 'RunPod Secure Cloud, runpod.io/pricing';
const LAMBDA = 'Lambda, lambda.ai/instances';
/** Read through github.com/skypilot-org/skypilot-catalog, v8 at 000c1d0, which names no day. */
const VERDA = 'Verda, FIN-03';
const VERDA_DATE = '2026';

function verdaSpot(usdPerHour: number): GpuPrice['spot'] {
  return { usdPerHour, provider: VERDA, date: VERDA_DATE };
}

/**
 * One price a GPU: of a provider that rents it by the hour without commitment. H20, GB200, B300, L40, A30, MI355X, Gaudi
 * and Arc have no row: no public price per hour is known here.
 */
export const GPU_PRICES: readonly GpuPrice[] = [
  { gpu: 'a100-40gb', usdPerHour: 1.99, provider: LAMBDA, date: '2026-09-20', spot: null },
  { gpu: 'a100-80gb', usdPerHour: 1.79, provider: RUNPOD, date: '2026-11-09', spot: verdaSpot(0.4515) },
  { gpu: 'a100-pcie-80gb', usdPerHour: 1.79, provider: RUNPOD, date: '2026-11-09', spot: null },
  { gpu: 'h100-80gb', usdPerHour: 3.99, provider: RUNPOD, date: '2026-11-09', spot: verdaSpot(0.8015) },
  { gpu: 'h100-pcie-80gb', usdPerHour: 2.89, provider: RUNPOD, date: '2026-11-09', spot: null },
  { gpu: 'h100-nvl-94gb', usdPerHour: 3.19, provider: RUNPOD, date: '2026-11-09', spot: null },
  { gpu: 'h200-141gb', usdPerHour: 4.59, provider: RUNPOD, date: '2026-10-07', spot: verdaSpot(1.1865) },
  { gpu: 'gh200-96gb', usdPerHour: 1.49, provider: LAMBDA, date: '2025', spot: null },
  { gpu: 'b200-180gb', usdPerHour: 6.79, provider: RUNPOD, date: '2026-10-07', spot: verdaSpot(1.712) },
  { gpu: 'l40s-48gb', usdPerHour: 1.861, provider: 'AWS g6e.xlarge, us-east-1', date: '2025', spot: null },
  { gpu: 'l4-24gb', usdPerHour: 0.8048, provider: 'AWS g6.xlarge, us-east-1', date: '2025', spot: null },
  { gpu: 'a10-24gb', usdPerHour: 0.75, provider: LAMBDA, date: '2025', spot: null },
  { gpu: 'a10g-24gb', usdPerHour: 1.006, provider: 'AWS g5.xlarge, us-east-1', date: '2025', spot: null },
  { gpu: 'a40-48gb', usdPerHour: 0.44, provider: RUNPOD, date: '2026-08-19', spot: null },
  { gpu: 'rtx-a6000-48gb', usdPerHour: 0.8, provider: LAMBDA, date: '2025', spot: null },
  {
    gpu: 'rtx-6000-ada-48gb',
    usdPerHour: 0.8262,
    provider: VERDA,
    date: VERDA_DATE,
    spot: null,
  },
  {
    gpu: 'rtx-pro-6000-96gb',
    usdPerHour: 2.04,
    provider: 'Akash, akash.network/pricing/gpus',
    date: '2026-09-20',
    spot: verdaSpot(0.5915),
  },
  { gpu: 'rtx3090-24gb', usdPerHour: 0.46, provider: RUNPOD, date: '2025', spot: null },
  { gpu: 'rtx4090-24gb', usdPerHour: 0.69, provider: RUNPOD, date: '2025', spot: null },
  {
    gpu: 'mi300x-192gb',
    usdPerHour: 1.85,
    provider: 'Vultr, vultr.com/pricing',
    date: '2026-05-18',
    spot: { usdPerHour: 1.71, provider: 'Crusoe', date: '2026-05-18' },
  },
  { gpu: 'mi325x-256gb', usdPerHour: 1.95, provider: 'TensorWave', date: '2026-05-18', spot: null },
];

/** Price of the GPU of this id; `undefined`: none known. */
export function listPrice(gpu: string): GpuPrice | undefined {
  return GPU_PRICES.find((price) => price.gpu === gpu);
}

/** Prices of one's own, USD an hour, by the id of the GPU's name. */
export type GpuPrices = ReadonlyMap<string, number>;

/**
 * Prices in JSON, `{"H100-80GB": 2.5}`.
 * @param source File name for the messages.
 * @throws {CalibrationError} when it is not JSON.
 * @throws {ProfileError} naming a price that is not one.
 */
export function parsePrices(text: string, source: string): GpuPrices {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new CalibrationError(
      'CALIBRATION_HARDWARE',
      `${source}: expected prices in JSON, such as {"H100-80GB": 2.5}, got ${(error as SyntaxError).message}`,
    );
  }
  const fields = new FieldReader(source, '', value);
  return new Map(fields.keys.map((name) => [idOf(name), fields.number(name, 0, 10_000)]));
}

export interface PriceSource {
  readonly own: GpuPrices;
  readonly isSpot: boolean;
  /** Whether the table of list prices counts where `own` has none. */
  readonly useTable: boolean;
}

/** Price of a GPU by its name, and who says so; `undefined`: none known. */
export function priceOf(
  name: string,
  { own, isSpot, useTable }: PriceSource,
): { readonly usdPerHour: number; readonly source: string } | undefined {
  const id = idOf(name);
  const mine = own.get(id);
  if (mine !== undefined) return { usdPerHour: mine, source: '--prices' };
  const listed = useTable ? listPrice(id) : undefined;
  const price = isSpot ? listed?.spot : listed;
  if (!price) return undefined;
  return {
    usdPerHour: price.usdPerHour,
    source: `${price.provider}, ${isSpot ? 'spot, ' : ''}${price.date}`,
  };
}
