import { styleText } from 'node:util';
import { Command } from 'commander';
import packageJson from '../../package.json' with { type: 'json' };
import { withCode } from './failure.ts';

/**
 * A command: its line in the list, and the module whose export `<name>Command` makes it, which is imported only when it is
 * asked for. Of a group, the commands below it.
 */
type CommandEntry = readonly [summary: string, commands: (() => Promise<object>) | Commands];
interface Commands {
  readonly [name: string]: CommandEntry;
}

/** Commands by their heading in the help. */
const COMMANDS: Readonly<Record<string, Commands>> = {
  'Serve and simulate:': {
    serve: ['serve an environment over OpenEnv, with the web console', () => import('./serve.ts')],
    endpoint: [
      'serve a simulated deployment over the OpenAI API, in real time',
      () => import('./endpoint.ts'),
    ],
    simulate: [
      'serve traffic on a simulated deployment and report its latencies',
      () => import('./simulate/command.ts'),
    ],
  },
  'Choose hardware and settings:': {
    plan: ['find the cheapest GPUs, and how many, for your traffic and SLO', () => import('./plan.ts')],
    tune: ['find the engine settings that serve your traffic best', () => import('./tune.ts')],
    diff: ['say whether a change of settings breaks an SLO on your traffic', () => import('./diff.ts')],
  },
  'Traffic and profiles:': {
    profile: [
      'list, make and confirm engine profiles: how long iterations take on a GPU',
      {
        list: ['list the engine profiles with their fit errors', () => import('./profile/list.ts')],
        show: ['print a profile in full', () => import('./profile/list.ts')],
        make: [
          'make one from a running server, measurements or data sheets',
          () => import('./profile/make.ts'),
        ],
        confirm: [
          'compare a running server with the prediction of its profile',
          () => import('./profile/running-server.ts'),
        ],
        table: [
          'make the tables of measurements that inferencegym plays',
          {
            build: ['measure a profile on the simulator', () => import('./profile/table.ts')],
          },
        ],
      },
    ],
    traffic: [
      'look at files of requests, convert them, and draw traffic',
      {
        describe: [
          'print rates, bursts and lengths; without a traffic, list the models',
          () => import('./traffic/describe.ts'),
        ],
        convert: [
          'write a file of requests in the form that all commands read',
          () => import('./traffic/convert.ts'),
        ],
        draw: ['write drawn traffic to a file', () => import('./traffic/convert.ts')],
      },
    ],
  },
  'Train and evaluate:': {
    train: ['learn a policy on the training traffic of a task', () => import('./train/command.ts')],
    evaluate: ['play and grade policies, also a language model', () => import('./evaluate/command.ts')],
    validate: [
      'check any running OpenEnv server, or environments in this process',
      () => import('./validate.ts'),
    ],
    policy: [
      'write a router or another policy as code, and know what it is worth',
      {
        new: ['write one to begin with', () => import('./policy/command.ts')],
        evaluate: [
          'serve the traces of a suite with it, and print its score',
          () => import('./policy/command.ts'),
        ],
        search: ['find better numbers for its parameters', () => import('./policy/search.ts')],
        export: ['write it in the form of a real system', () => import('./policy/export.ts')],
        compare: ['serve the same traces with two', () => import('./policy/command.ts')],
      },
    ],
    season: [
      'run a ranked competition with secret seeds and results that anybody can check',
      () => import('./season.ts'),
    ],
    worker: ['do the jobs of commands that were started with --queue', () => import('./jobs.ts')],
  },
};

const ALWAYS = { validateStream: false };

/** Columns of the help where it does not go to a terminal. */
const HELP_WIDTH = 100;

/** The command line. Only the command that the words name has its options, or each of `all`; the others stand in the list. */
export async function buildProgram(words: readonly string[] | 'all'): Promise<Command> {
  const program = new Command('servegym')
    .description(packageJson.description)
    .version(packageJson.version)
    .enablePositionalOptions()
    .helpCommand(false)
    // Commander leaves colours out where the output is no terminal, or NO_COLOR is set.
    .configureHelp({
      styleTitle: (text) => styleText('bold', text, ALWAYS),
      styleCommandText: (text) => styleText('cyan', text, ALWAYS),
      styleSubcommandTerm: (text) => styleText('cyan', text, ALWAYS),
      styleOptionTerm: (text) => styleText('cyan', text, ALWAYS),
    })
    .showHelpAfterError('(add --help for the options)')
    .configureOutput({
      outputError: writeUsageError,
      getOutHelpWidth: () => process.stdout.columns ?? HELP_WIDTH,
      getErrHelpWidth: () => process.stderr.columns ?? HELP_WIDTH,
    });
  for (const [heading, entries] of Object.entries(COMMANDS)) {
    program.commandsGroup(heading);
    await addCommands(program, entries, words);
  }
  return overrideExit(program);
}

async function addCommands(
  parent: Command,
  entries: Commands,
  words: readonly string[] | 'all',
): Promise<void> {
  for (const [name, [summary, commands]] of Object.entries(entries)) {
    const isAsked = words === 'all' || words[0] === name;
    const command = isAsked && typeof commands === 'function' ? made(name, await commands()) : new Command();
    if (command.description() === '') command.description(summary);
    if (isAsked && typeof commands === 'object')
      await addCommands(command, commands, words === 'all' ? words : words.slice(1));
    parent.addCommand(command.name(name).summary(summary));
  }
}

function made(name: string, module: object): Command {
  return (module as Readonly<Record<string, () => Command>>)[`${name}Command`]();
}

/** Writes an error that Commander has found, with the code of such errors at the end of its first line. */
function writeUsageError(text: string, write: (text: string) => void): void {
  const [message, ...rest] = text.split('\n');
  write([withCode(message, 'INVALID_COMMAND_LINE'), ...rest].join('\n'));
}

/** Lets a command and those below it throw where they would end the process. */
function overrideExit(command: Command): Command {
  command.exitOverride();
  for (const each of command.commands) overrideExit(each.copyInheritedSettings(command));
  return command;
}
