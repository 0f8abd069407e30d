import { Command } from 'commander';
import packageJson from '../../package.json' with { type: 'json' };
import { withCode } from './failure.ts';

interface CommandEntry {
  readonly name: string;
  /** Its line in the list of commands. */
  readonly summary: string;
  /** Imports the command; only the one that was asked for is. */
  readonly load: () => Promise<Command>;
}

const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'serve',
    summary: 'serve an environment over OpenEnv, with the web console',
    load: async () => (await import('./serve/command.ts')).serveCommand(),
  },
  {
    name: 'simulate',
    summary: 'serve a trace on a simulated engine and report its latencies',
    load: async () => (await import('./simulate/command.ts')).simulateCommand(),
  },
  {
    name: 'fleet',
    summary: 'play autoscalers on a fleet of simulated replicas',
    load: async () => (await import('./fleet/command.ts')).fleetCommand(),
  },
  {
    name: 'check',
    summary: 'check whether a task is sound and worth learning, ours or yours',
    load: async () => (await import('./check/command.ts')).checkCommand(),
  },
  {
    name: 'traffic',
    summary: 'list, draw and fit models of traffic',
    load: async () => (await import('./traffic/command.ts')).trafficCommand(),
  },
  {
    name: 'profiles',
    summary: 'list the engine profiles with their fit errors',
    load: async () => (await import('./profiles/command.ts')).profilesCommand(),
  },
  {
    name: 'calibrate',
    summary: 'make an engine profile from measured latencies',
    load: async () => (await import('./calibrate/command.ts')).calibrateCommand(),
  },
  {
    name: 'confirm',
    summary: 'compare a running server with the prediction of its profile',
    load: async () => (await import('./confirm/command.ts')).confirmCommand(),
  },
  {
    name: 'fidelity',
    summary: 'compare the simulator with measurements of real servers',
    load: async () => (await import('./fidelity/command.ts')).fidelityCommand(),
  },
  {
    name: 'evaluate',
    summary: 'play and grade a policy',
    load: async () => (await import('./evaluate/command.ts')).evaluateCommand(),
  },
  {
    name: 'oracle',
    summary: 'print the returns of the best constant and of the planners',
    load: async () => (await import('./oracle/command.ts')).oracleCommand(),
  },
  {
    name: 'compare',
    summary: 'play policies on the same traffic and say which are better',
    load: async () => (await import('./compare/command.ts')).compareCommand(),
  },
  {
    name: 'season',
    summary: 'run a ranked competition with secret seeds and results that anybody can check',
    load: async () => (await import('./season/command.ts')).seasonCommand(),
  },
  {
    name: 'train',
    summary: 'learn a policy on the training traffic of a task',
    load: async () => (await import('./train/command.ts')).trainCommand(),
  },
  {
    name: 'tune',
    summary: 'find the engine settings that serve your traffic best',
    load: async () => (await import('./tune/command.ts')).tuneCommand(),
  },
  {
    name: 'plan',
    summary: 'find the cheapest GPUs, and how many, for your traffic and SLO',
    load: async () => (await import('./plan/command.ts')).planCommand(),
  },
  {
    name: 'diff',
    summary: 'say whether a change of settings breaks an SLO on your traffic',
    load: async () => (await import('./diff/command.ts')).diffCommand(),
  },
  {
    name: 'trace',
    summary: 'look at a trace of requests',
    load: async () => (await import('./trace/command.ts')).traceCommand(),
  },
  {
    name: 'worker',
    summary: 'do the jobs of commands that were started with --queue',
    load: async () => (await import('./worker/command.ts')).workerCommand(),
  },
  {
    name: 'table',
    summary: 'make and check the tables of measurements that inferencegym plays',
    load: async () => (await import('./table/command.ts')).tableCommand(),
  },
  {
    name: 'datasets',
    summary: 'write episodes of a policy as Parquet',
    load: async () => (await import('./datasets/command.ts')).datasetsCommand(),
  },
  {
    name: 'bench',
    summary: 'measure servers',
    load: async () => (await import('./bench/command.ts')).benchCommand(),
  },
  {
    name: 'baseline',
    summary: 'play and grade each task by rules or by a language model',
    load: async () => (await import('./baseline/command.ts')).baselineCommand(),
  },
  {
    name: 'endpoint',
    summary: 'serve a simulated engine over the OpenAI API, in real time',
    load: async () => (await import('./endpoint/command.ts')).endpointCommand(),
  },
  {
    name: 'validate',
    summary: 'check any running OpenEnv server',
    load: async () => (await import('./validate/command.ts')).validateCommand(),
  },
  {
    name: 'selftest',
    summary: 'play environments in this process, without a server',
    load: async () => (await import('./selftest/command.ts')).selftestCommand(),
  },
];

/** The command line. Only the command that is asked for has its options; the others stand in the list. */
export async function buildProgram(asked: string | undefined): Promise<Command> {
  const program = new Command('servegym')
    .description(packageJson.description)
    .version(packageJson.version)
    .enablePositionalOptions()
    .showHelpAfterError('(add --help for the options)')
    .configureOutput({ outputError: writeUsageError });
  for (const { name, summary, load } of COMMANDS) {
    if (name === asked) program.addCommand(await load());
    else program.command(name).summary(summary).description(summary);
  }
  return overrideExit(program);
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
