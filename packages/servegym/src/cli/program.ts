import { styleText } from 'node:util';
import { Command } from 'commander';
import packageJson from '../../package.json' with { type: 'json' };
import { withCode } from './failure.ts';

/**
 * A command: its line in the list and above its help, and the module whose export `<name>Command` makes it, which is imported only when it is
 * asked for. Of a group, the commands below it.
 */
type CommandEntry = readonly [line: string, commands: (() => Promise<object>) | Commands];
interface Commands {
  readonly [name: string]: CommandEntry;
}

/** Commands of one module, with their lines. */
const from = (load: () => Promise<object>, lines: Readonly<Record<string, string>>): Commands =>
  Object.fromEntries(Object.entries(lines).map(([name, line]) => [name, [line, load]]));

const COMMANDS: Readonly<Record<string, Commands>> = {
  'Serve and simulate:': {
    serve: ['serve environments over OpenEnv, with the web console', () => import('./serve.ts')],
    endpoint: [
      'serve a simulated deployment over the OpenAI API, in real time, for clients and load generators',
      () => import('./endpoint.ts'),
    ],
    simulate: [
      'serve traffic on a simulated deployment and report its latencies',
      () => import('./simulate/command.ts'),
    ],
  },
  'Choose hardware and settings:': {
    plan: ['find the cheapest GPUs, and how many, for your traffic and SLO', () => import('./plan.ts')],
    tune: ['find the engine settings that serve your traffic best under your SLO', () => import('./tune.ts')],
    diff: ['say whether a change of settings breaks an SLO on your traffic', () => import('./diff.ts')],
  },
  'Traffic and profiles:': {
    profile: [
      'list, make and confirm engine profiles: how long iterations take on a GPU',
      {
        ...from(() => import('./profile/profile-report.ts'), {
          list: 'list the engine profiles with their fit errors',
          show: 'print an engine profile in full, with the command that makes it again',
        }),
        make: [
          'make an engine profile from a running server, from measurements, or from data sheets',
          () => import('./profile/make.ts'),
        ],
        confirm: [
          'send traffic to a running server, and compare it with the prediction of a profile',
          () => import('./profile/running-server.ts'),
        ],
        table: [
          'make the tables of measurements that inferencegym plays',
          from(() => import('./profile/table.ts'), {
            build: 'measure an engine profile on the simulator and write its trace table',
          }),
        ],
      },
    ],
    traffic: [
      'look at files of requests, convert them, and draw traffic',
      {
        describe: [
          'print rates, bursts, lengths and oddities of a traffic; without one, the models and their distance to their traces',
          () => import('./traffic/describe.ts'),
        ],
        ...from(() => import('./traffic/convert.ts'), {
          convert: 'write a file of requests in the form that all commands read without options',
          draw: 'write drawn traffic to a file',
        }),
      },
    ],
  },
  'Train and evaluate:': {
    train: ['learn a policy on the training traffic of a task', () => import('./train/command.ts')],
    evaluate: [
      'play and grade policies, also a language model, with 95 % intervals; several on the same seeds',
      () => import('./evaluate/command.ts'),
    ],
    validate: [
      'check any running OpenEnv server, or environments that are served for it',
      () => import('./validate.ts'),
    ],
    policy: [
      'write a router or another policy as code, and know what it is worth',
      {
        ...from(() => import('./policy/command.ts'), {
          new: 'write a policy to begin with, with the types of what it sees',
          evaluate:
            'serve the traces of a suite with a policy, and say what it is worth: 0 is the default, 1 the best known',
          compare: 'serve the same traces with two policies, and say which is better',
        }),
        search: [
          'look for the numbers in `const parameters = {...}` of a policy that score best on the training traces',
          () => import('./policy/search.ts'),
        ],
        export: [
          'write a policy in the form of a real system; what it cannot be there is refused with the reason',
          () => import('./policy/export.ts'),
        ],
      },
    ],
    season: [
      'run a ranked competition: secret seeds, one play of each, results that anybody can check',
      from(() => import('./season.ts'), {
        create: 'draw the secret of a season, and print the commitment to publish',
        admit: 'admit a submission, and print its token',
        serve:
          'serve the season over OpenEnv until a signal ends it; after a restart it continues where it was',
        close: 'end the season, compute the anchors of its seeds, and publish secret, actions and scores',
        verify:
          'check the results of a season: seeds against the commitment, every episode and anchor by replay',
      }),
    ],
    worker: [
      'do the jobs of commands that were started with --queue, on this machine',
      () => import('./jobs.ts'),
    ],
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

async function addCommands(parent: Command, entries: Commands, words: readonly string[] | 'all') {
  for (const [name, [line, commands]] of Object.entries(entries)) {
    const isAsked = words === 'all' || words[0] === name;
    const command = isAsked && typeof commands === 'function' ? made(name, await commands()) : new Command();
    if (isAsked && typeof commands === 'object')
      await addCommands(command, commands, words === 'all' ? words : words.slice(1));
    parent.addCommand(command.name(name).description(line));
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
