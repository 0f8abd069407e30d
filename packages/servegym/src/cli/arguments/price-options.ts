import { parsePrices, priceOf } from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import { type Command, Option } from 'commander';
import { InputError } from '../input-error.ts';
import { readInputFile } from './read-input-file.ts';

export interface PriceOptions {
  readonly prices?: string;
  readonly spot?: true;
}

/** Adds the options that say what a GPU costs. */
export function addPriceOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--prices <file.json>',
        'USD an hour of your GPUs, as {"H100-80GB": 2.5} (default: a table of public list prices)',
      ).env('SERVEGYM_PRICES'),
    )
    .option('--spot', 'prices of capacity that the provider may take back');
}

/**
 * Profiles with the prices of today: of `--prices`, else the table's for a shipped profile and its own for one of a
 * file. `note` says what each costs and who says so.
 */
export async function withPrices(
  profiles: readonly { readonly profile: EngineProfile; readonly isShipped: boolean }[],
  { prices, spot }: PriceOptions,
): Promise<{ readonly profiles: EngineProfile[]; readonly note: string }> {
  const own =
    prices === undefined ? new Map<string, number>() : parsePrices(await readInputFile(prices), prices);
  const notes = new Map<string, string>();
  const priced = profiles.map(({ profile, isShipped }) => {
    const { gpu } = profile;
    const found = priceOf(gpu.name, { own, isSpot: spot === true, useTable: isShipped || spot === true });
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
