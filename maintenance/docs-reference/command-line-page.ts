import { homedir } from 'node:os';
import type { Command } from 'commander';
import { buildProgram } from '../../packages/servegym/src/cli/program.ts';
import { block, code, prose, table } from './markdown.ts';

/** All commands with their arguments, options and notes, as `--help` has them. */
export async function commandLinePage(): Promise<string> {
  const program = await buildProgram('all');
  const commands = program.createHelp().visibleCommands(program);
  const parts = [
    '# Command line',
    'The same texts as `npx servegym --help` and `npx servegym <command> --help`.',
    ...table(
      ['command', 'purpose'],
      commands.map((command) => [`[${command.name()}](#${command.name()})`, command.description()]),
    ),
    ...commands.flatMap((command) => commandSections(command, [])),
  ];
  return `${parts.join('\n\n')}\n`;
}

function commandSections(command: Command, parents: readonly string[]): string[] {
  const path = [...parents, command.name()];
  const help = command.createHelp();
  const below = command.commands;
  return [
    `${'#'.repeat(Math.min(path.length + 1, 4))} ${path.join(' ')}`,
    prose(help.commandDescription(command)),
    block(
      'sh',
      `npx servegym ${[...parents, help.commandUsage(command).replace(/^servegym /, '')].join(' ')}`,
    ),
    ...table(
      ['argument', 'meaning'],
      help
        .visibleArguments(command)
        .map((each) => [code(help.argumentTerm(each)), help.argumentDescription(each)]),
    ),
    ...table(
      ['option', 'meaning'],
      help
        .visibleOptions(command)
        .map((each) => [code(each.flags), help.optionDescription(each).replaceAll(homedir(), '~')]),
    ),
    ...notesOf(command).map((notes) => block('text', notes)),
    ...below.flatMap((each) => commandSections(each, path)),
  ];
}

/** Texts that a command adds below its options. */
function notesOf(command: Command): string[] {
  let shown = '';
  command.configureOutput({
    writeOut: (text) => {
      shown += text;
    },
  });
  command.outputHelp();
  const notes = shown.slice(command.helpInformation().length).trim();
  return notes === '' ? [] : [notes];
}
