import { type EngineProfile, listProfiles } from '@servegym/simulator';
import { Command } from 'commander';
import { readProfile } from '../arguments/read-input-file.ts';
import { refitProfilesCommand } from './profiles-refit-command.ts';
import { profileSheet, profilesTable } from './profiles-report.ts';

/** `servegym profiles`: what engines can be simulated, and how well. */
export function profilesCommand(): Command {
  return new Command('profiles')
    .description('list the engine profiles with their fit errors')
    .argument('[name]', 'show one profile (a name, or a file ending in .json) in full')
    .option('--json', 'print JSON: a list of profiles, or the one', false)
    .action(showProfiles)
    .addCommand(refitProfilesCommand());
}

async function showProfiles(name: string | undefined, { json }: { json: boolean }): Promise<void> {
  const shown: EngineProfile | EngineProfile[] =
    name === undefined ? listProfiles() : await readProfile(name);
  if (json) console.log(JSON.stringify(shown, null, 2));
  else console.log(Array.isArray(shown) ? profilesTable(shown) : profileSheet(shown));
}
