#!/usr/bin/env node
import { CommanderError } from 'commander';
import { exitCodeOf, failureMessage } from './cli/failure.ts';
import { buildProgram } from './cli/program.ts';
import { requireNode } from './cli/require-node.ts';
import { maskOutput } from './mask-output.ts';

// Node 22 warns at each start that its SQLite is experimental.
const { emitWarning } = process;
process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
  if (!String(warning).startsWith('SQLite is an experimental feature'))
    Reflect.apply(emitWarning, process, [warning, ...rest]);
};
maskOutput(process.stdout);
maskOutput(process.stderr);
// A reader such as `head` closes the pipe once it has read enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

if (process.argv.length === 2) process.argv.push('serve');

try {
  requireNode();
  const asked = process.argv[2] === 'help' ? process.argv[3] : process.argv[2];
  const program = await buildProgram(asked);
  await program.parseAsync();
} catch (error) {
  // Commander has already written its own message.
  if (!(error instanceof CommanderError)) console.error(`error: ${failureMessage(error)}`);
  process.exitCode = exitCodeOf(error);
}
