import { type Command, CommanderError } from 'commander';
import { exitCodeOf, failureMessage } from '../packages/servegym/src/cli/failure.ts';

/** Runs a command with the arguments of this process; errors end it as those of `servegym` do. */
export async function runCommand(command: Command): Promise<void> {
  try {
    await command.exitOverride().parseAsync();
  } catch (error) {
    // Commander has already written its own message.
    if (!(error instanceof CommanderError)) console.error(`error: ${failureMessage(error)}`);
    process.exitCode = exitCodeOf(error);
  }
}
