import { parseSlo, type SloTerm } from '@servegym/operators';
import { parsePrices, priceOf } from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import type { OptionTable } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { readInputFile } from './input-files.ts';

/** `--slo`, with its default. */
export function sloOption(bounds: string) {
  return {
    value: '<bounds>',
    parse: parseSlo,
    default: parseSlo(bounds),
    defaultText: bounds,
    help: 'percentiles or means of ttft, tpot and e2e',
  } as const;
}

/** @throws InputError when a bound is of a priority class */
export function refuseClassBounds(slo: readonly SloTerm[], reason: string): void {
  if (slo.some(({ priorityClass }) => priorityClass !== undefined))
    throw new InputError(`--slo: expected bounds of all requests, as ${reason} no priority classes`);
}

/** What a GPU costs. */
export const priceOptions = {
  prices: { value: '<file.json>', env: 'SERVEGYM_PRICES', help: 'your USD an hour, as {"H100-80GB": 2.5}' },
  spot: { help: 'prices of capacity that the provider may take back' },
} as const satisfies OptionTable;

/**
 * Profiles with the prices of today: of `--prices`, else the table's for a shipped profile and its own for one of a
 * file. `note` says what each costs and who says so.
 */
export async function withPrices(
  profiles: readonly EngineProfile[],
  { prices, spot = false }: { readonly prices?: string | undefined; readonly spot?: boolean },
  isShipped: (index: number) => boolean = () => true,
): Promise<{ readonly profiles: EngineProfile[]; readonly note: string }> {
  const own =
    prices === undefined ? new Map<string, number>() : parsePrices(await readInputFile(prices), prices);
  const notes = new Map<string, string>();
  const priced = profiles.map((profile, i) => {
    const { gpu } = profile;
    const found = priceOf(gpu.name, { own, isSpot: spot, useTable: isShipped(i) || spot });
    if (found === undefined && spot) {
      throw new InputError(`no spot price of ${gpu.name} is known: give yours in --prices instead of --spot`);
    }
    const usdPerHour = found?.usdPerHour ?? gpu.usdPerHour;
    const source = found?.source ?? `the profile ${profile.name}`;
    notes.set(
      gpu.name,
      usdPerHour === 0
        ? `${gpu.name}: no price known, costs count as 0; --prices gives one`
        : `${gpu.name}: ${usdPerHour} USD an hour (${source})`,
    );
    return { ...profile, gpu: { ...gpu, usdPerHour } };
  });
  return { profiles: priced, note: [...notes.values()].join('\n') };
}
