import { profilesOnGpu } from '@servegym/operators';
import { listProfiles } from '@servegym/profiles';
import { PROFILE_STATUSES } from '@servegym/simulator';
import { defineCommand } from '../command-table.ts';
import { readProfile } from '../files.ts';
import { printResult } from '../output/print-result.ts';
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
