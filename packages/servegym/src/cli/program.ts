import { styleText } from 'node:util';
import { Command } from 'commander';
import packageJson from '../../package.json' with { type: 'json' };
import { withCode } from './failure.ts';

interface CommandEntry {
  /** Its line in the list of commands. */
  readonly summary: string;
  /** Imports the command; only the one that was asked for is. */
  readonly load?: () => Promise<Command>;
  /** Commands below it, of a command that is a group. */
  readonly commands?: Commands;
}
type Commands = Readonly<Record<string, CommandEntry>>;

/** Commands by their heading in the help. */
const COMMANDS: Readonly<Record<string, Commands>> = {
  'Serve and simulate:': {
    serve: {
      summary: 'serve an environment over OpenEnv, with the web console',
      load: async () => (await import('./serve.ts')).serveCommand(),
    },
    endpoint: {
      summary: 'serve a simulated deployment over the OpenAI API, in real time',
      load: async () => (await import('./endpoint.ts')).endpointCommand(),
    },
    simulate: {
      summary: 'serve traffic on a simulated deployment and report its latencies',
      load: async () => (await import('./simulate/command.ts')).simulateCommand(),
    },
  },
  'Choose hardware and settings:': {
    plan: {
      summary: 'find the cheapest GPUs, and how many, for your traffic and SLO',
      load: async () => (await import('./plan.ts')).planCommand(),
    },
    tune: {
      summary: 'find the engine settings that serve your traffic best',
      load: async () => (await import('./tune.ts')).tuneCommand(),
    },
    diff: {
      summary: 'say whether a change of settings breaks an SLO on your traffic',
      load: async () => (await import('./diff.ts')).diffCommand(),
    },
  },
  'Traffic and profiles:': {
    profile: {
      summary: 'list, make and confirm engine profiles: how long iterations take on a GPU',
      commands: {
        list: {
          summary: 'list the engine profiles with their fit errors',
          load: async () => (await import('./profile/list.ts')).listCommand(),
        },
        show: {
          summary: 'print a profile in full',
          load: async () => (await import('./profile/list.ts')).showCommand(),
        },
        make: {
          summary: 'make one from a running server, measurements or data sheets',
          load: async () => (await import('./profile/make.ts')).makeCommand(),
        },
        confirm: {
          summary: 'compare a running server with the prediction of its profile',
          load: async () => (await import('./profile/running-server.ts')).confirmCommand(),
        },
        refit: {
          summary: 'fit the shipped profiles again, and compare',
          load: async () => (await import('./profile/list.ts')).refitCommand(),
        },
        table: {
          summary: 'make and check the tables of measurements that inferencegym plays',
          commands: {
            build: {
              summary: 'measure a profile on the simulator',
              load: async () => (await import('./profile/table.ts')).tableBuildCommand(),
            },
            check: {
              summary: 'list the problems of a table of yours',
              load: async () => (await import('./profile/table.ts')).tableCheckCommand(),
            },
            calibrate: {
              summary: 'measure what grades on a table compare with',
              load: async () => (await import('./profile/table.ts')).tableCalibrateCommand(),
            },
          },
        },
      },
    },
    traffic: {
      summary: 'look at files of requests, convert them, draw traffic and fit models of it',
      commands: {
        describe: {
          summary: 'print rates, bursts and lengths; without a traffic, list the models',
          load: async () => (await import('./traffic/describe.ts')).describeCommand(),
        },
        convert: {
          summary: 'write a file of requests in the form that all commands read',
          load: async () => (await import('./traffic/convert.ts')).convertCommand(),
        },
        draw: {
          summary: 'write drawn traffic to a file',
          load: async () => (await import('./traffic/convert.ts')).drawCommand(),
        },
        fit: {
          summary: 'fit a model to each trace, and say how near it comes',
          load: async () => (await import('./traffic/describe.ts')).fitCommand(),
        },
      },
    },
  },
  'Train and evaluate:': {
    train: {
      summary: 'learn a policy on the training traffic of a task',
      load: async () => (await import('./train/command.ts')).trainCommand(),
    },
    evaluate: {
      summary: 'play and grade policies, also a language model',
      load: async () => (await import('./evaluate/command.ts')).evaluateCommand(),
    },
    validate: {
      summary: 'check any running OpenEnv server, or environments in this process',
      load: async () => (await import('./validate.ts')).validateCommand(),
    },
    policy: {
      summary: 'write a router or another policy as code, and know what it is worth',
      commands: {
        new: {
          summary: 'write one to begin with',
          load: async () => (await import('./policy/command.ts')).newPolicyCommand(),
        },
        evaluate: {
          summary: 'serve the traces of a suite with it, and print its score',
          load: async () => (await import('./policy/command.ts')).evaluatePolicyCommand(),
        },
        search: {
          summary: 'find better numbers for its parameters',
          load: async () => (await import('./policy/search.ts')).searchPolicyCommand(),
        },
        export: {
          summary: 'write it in the form of a real system',
          load: async () => (await import('./policy/export.ts')).exportPolicyCommand(),
        },
        compare: {
          summary: 'serve the same traces with two',
          load: async () => (await import('./policy/command.ts')).comparePoliciesCommand(),
        },
      },
    },
    season: {
      summary: 'run a ranked competition with secret seeds and results that anybody can check',
      load: async () => (await import('./season.ts')).seasonCommand(),
    },
    worker: {
      summary: 'do the jobs of commands that were started with --queue',
      load: async () => (await import('./jobs.ts')).workerCommand(),
    },
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
  for (const [name, { summary, load, commands = {} }] of Object.entries(entries)) {
    const isAsked = words === 'all' || words[0] === name;
    const command = isAsked && load ? await load() : new Command();
    if (command.description() === '') command.description(summary);
    if (isAsked) await addCommands(command, commands, words === 'all' ? words : words.slice(1));
    parent.addCommand(command.name(name).summary(summary));
  }
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
