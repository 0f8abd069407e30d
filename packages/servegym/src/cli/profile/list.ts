import { basename, dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { profilesOnGpu } from '@servegym/operators';
import { findReferenceFiles, REFERENCE_DATA } from '@servegym/operators/traces';
import { findProfile, listLastingProfiles, listProfiles } from '@servegym/profiles';
import { type EngineProfile, PROFILE_STATUSES } from '@servegym/simulator';
import { defineCommand } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { readProfile, writeJsonFile } from '../files.ts';
import { printResult } from '../output/print-result.ts';
import { madeBy } from './make.ts';
import { profileForm, profilesForm } from './profile-report.ts';

/** `servegym profile list`: what engines can be simulated, and how well. */
export const listCommand = () =>
  defineCommand({
    options: {
      gpu: { value: '<text>', help: 'of a GPU, by its name or a part of it, for instance h200' },
      model: { value: '<text>', help: 'of models with this in their name, for instance qwen' },
      status: {
        value: '<status>',
        choices: PROFILE_STATUSES,
        help: 'measured on an engine, made from tables of kernel times, or estimated from data sheets',
      },
      json: { help: 'print a JSON list of profiles' },
    },
    action({ gpu, model, status, json }) {
      const onGpu = gpu === undefined ? listProfiles() : profilesOnGpu(listProfiles(), gpu);
      const shown = onGpu.filter(
        (profile) =>
          contains(profile.model.name, model) && (status === undefined || profile.status === status),
      );
      printResult(json, shown, profilesForm);
    },
  });

/** `servegym profile show`: a profile in full. */
export const showCommand = () =>
  defineCommand({
    description: 'print an engine profile in full, with the command that makes it again',
    words: { profile: { value: '<name|file.json>', help: 'a shipped profile, or one in a file' } },
    options: { json: { help: 'print the profile as JSON' } },
    async action({ profile: name, json }) {
      printResult(json, await readProfile(name), profileForm);
    },
  });

/** Whether a name contains a text, but for case, spaces and hyphens. */
function contains(name: string, text = ''): boolean {
  const plain = (words: string) => words.toLowerCase().replace(/[\s_-]/g, '');
  return plain(name).includes(plain(text));
}

/** `servegym profile refit`: the shipped profiles, made again from the measurements behind them. */
export const refitCommand = () =>
  defineCommand({
    description: 'fit shipped profiles again, each by the command that it names, and compare',
    words: { names: { value: '[names...]', help: 'profiles (default: all that were fitted)' } },
    options: {
      data: {
        value: '<folder>',
        required: true,
        help: 'the measurements behind the profiles, as docs/reference-data.md describes them',
      },
      out: {
        value: '<file>',
        help: 'write the shipped profiles with those that were fitted again in their places',
      },
      json: { help: 'print one JSON object' },
    },
    async action({ names, data, out, json }) {
      const shipped =
        names.length > 0 ? names.map(findProfile) : listLastingProfiles().filter(({ fit }) => fit !== null);
      const profiles: EngineProfile[] = [];
      for (const { name, fit, gpu } of shipped) {
        if (fit === null)
          throw new InputError(`${name} was estimated, not fitted: there is nothing to fit again`);
        const made = await madeBy(fit.command, (file) => locate(data, file));
        // Rewards count with the price of when a profile was first made, so that it stays, as does the command of that time.
        const profile = {
          ...made,
          gpu: { ...made.gpu, usdPerHour: gpu.usdPerHour },
          fit: made.fit && { ...made.fit, command: fit.command },
        };
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
        { profiles, changed },
        { text: () => `${profilesForm.text(profiles)}\n\n${verdict}` },
      );
    },
  });

/** Path of a file, or of the folder of kernel tables, that the command of a shipped profile names. */
function locate(data: string, name: string): string {
  const { staticBatches, denseKernels, sequenceKernels, attentionKernels } = REFERENCE_DATA;
  if (name === basename(staticBatches.path)) return findReferenceFiles(data, [staticBatches])[0];
  return dirname(findReferenceFiles(data, [denseKernels, sequenceKernels, attentionKernels])[0]);
}
