import { basename, dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { profilesOnGpu } from '@servegym/operators';
import { findReferenceFiles, REFERENCE_DATA } from '@servegym/operators/traces';
import { findProfile, listLastingProfiles, listProfiles } from '@servegym/profiles';
import { type EngineProfile, PROFILE_STATUSES, type ProfileStatus } from '@servegym/simulator';
import { Command, Option } from 'commander';
import { readProfile } from '../arguments/read-input-file.ts';
import { calibratedBy } from '../calibrate/command.ts';
import { InputError } from '../input-error.ts';
import { printResult } from '../output/print-result.ts';
import { writeJsonFile } from '../output/write-output-file.ts';
import { profileSheet, profilesTable } from './profiles-report.ts';

/** `servegym profiles`: what engines can be simulated, and how well. */
export function profilesCommand(): Command {
  return new Command('profiles')
    .description('list the engine profiles with their fit errors')
    .argument('[name]', 'show one profile (a name, or a file ending in .json) in full')
    .option('--gpu <text>', 'list profiles of a GPU, by its name or a part of it, for instance h200')
    .option('--model <text>', 'list profiles of models with this in their name, for instance qwen')
    .addOption(
      new Option(
        '--status <status>',
        'list those measured on an engine, made from tables of kernel times, or estimated from data sheets',
      ).choices(PROFILE_STATUSES),
    )
    .option('--json', 'print JSON: a list of profiles, or the one', false)
    .action(showProfiles)
    .addCommand(refitProfilesCommand());
}

interface ListOptions {
  readonly gpu?: string;
  readonly model?: string;
  readonly status?: ProfileStatus;
  readonly json: boolean;
}

async function showProfiles(name: string | undefined, options: ListOptions): Promise<void> {
  const { gpu, model, status, json } = options;
  if (name !== undefined && (gpu ?? model ?? status) !== undefined) {
    throw new InputError(`expected a name or --gpu, --model and --status, got both: leave out ${name}`);
  }
  const shown: EngineProfile | EngineProfile[] =
    name === undefined
      ? (gpu === undefined ? listProfiles() : profilesOnGpu(listProfiles(), gpu)).filter(
          (profile) =>
            contains(profile.model.name, model) && (status === undefined || profile.status === status),
        )
      : await readProfile(name);
  printResult(
    json,
    () => shown,
    () => (Array.isArray(shown) ? profilesTable(shown) : profileSheet(shown)),
  );
}

/** Whether a name contains a text, but for case, spaces and hyphens. */
function contains(name: string, text = ''): boolean {
  const plain = (words: string) => words.toLowerCase().replace(/[\s_-]/g, '');
  return plain(name).includes(plain(text));
}

interface RefitOptions {
  readonly data: string;
  readonly out?: string;
  readonly json: boolean;
}

/** `servegym profiles refit`: the shipped profiles, made again from the measurements behind them. */
function refitProfilesCommand(): Command {
  return new Command('refit')
    .description('fit shipped profiles again, each by the command that it names, and compare')
    .argument('[names...]', 'profiles (default: all that were fitted)')
    .requiredOption(
      '--data <folder>',
      'the measurements behind the profiles, as docs/reference-data.md describes them',
    )
    .option('--out <file>', 'write the shipped profiles with those that were fitted again in their places')
    .option('--json', 'print one JSON object', false)
    .action(refit);
}

async function refit(names: readonly string[], { data, out, json }: RefitOptions): Promise<void> {
  const shipped =
    names.length > 0 ? names.map(findProfile) : listLastingProfiles().filter(({ fit }) => fit !== null);
  const profiles: EngineProfile[] = [];
  for (const { name, fit, gpu } of shipped) {
    if (fit === null)
      throw new InputError(`${name} was estimated, not fitted: there is nothing to fit again`);
    const made = await calibratedBy(fit.command, (file) => locate(data, file));
    // Rewards count with the price of when a profile was first made, so that it stays.
    const profile = { ...made, gpu: { ...made.gpu, usdPerHour: gpu.usdPerHour } };
    profiles.push(profile);
  }
  if (out !== undefined) {
    const fitted = new Map(profiles.map((profile) => [profile.name, profile]));
    await writeJsonFile(
      out,
      listLastingProfiles().map((profile) => fitted.get(profile.name) ?? profile),
    );
  }
  const changed = shipped
    .filter((profile, i) => !isDeepStrictEqual(profile, profiles[i]))
    .map(({ name }) => name);
  const verdict = changed.length === 0 ? 'as shipped' : `not as shipped: ${changed.join(', ')}`;
  printResult(
    json,
    () => ({ profiles, changed }),
    () => `${profilesTable(profiles)}\n\n${verdict}`,
  );
}

/** Path of a file, or of the folder of kernel tables, that the command of a shipped profile names. */
function locate(data: string, name: string): string {
  const { staticBatches, denseKernels, sequenceKernels, attentionKernels } = REFERENCE_DATA;
  if (name === basename(staticBatches.path)) return findReferenceFiles(data, [staticBatches])[0];
  return dirname(findReferenceFiles(data, [denseKernels, sequenceKernels, attentionKernels])[0]);
}
