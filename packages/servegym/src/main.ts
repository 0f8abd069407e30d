#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { CommanderError } from 'commander';
import { exitCodeOf, failureMessage, maskOutput, requireNode } from './cli/failure.ts';
import { buildProgram } from './cli/program.ts';

// Node 22 warns at each start that its SQLite is experimental, and each that its stripping of types is.
const { emitWarning } = process;
process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
  if (!/^(?:SQLite|stripTypeScriptTypes) is an experimental feature/.test(String(warning)))
    Reflect.apply(emitWarning, process, [warning, ...rest]);
};
maskOutput(process.stdout);
maskOutput(process.stderr);
// A reader such as `head` closes the pipe once it has read enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

// Halves the time until a command begins, from its second start on.
enableCompileCache();
// An iteration of the engine is many small functions. V8 compiles them into one another up to 920 bytes of bytecode; with 2,000,
// `benchmarks/run.ts simulate-trace` takes a seventh to a quarter less processor time. With 3,000 it takes less still, but short commands
// spend what they gain on compiling.
setFlagsFromString('--max-inlined-bytecode-size-cumulative=2000');

try {
  requireNode();
  const [first, ...rest] = process.argv.slice(2);
  const words = first === 'help' ? [...rest, '--help'] : [first ?? 'serve', ...rest];
  const program = await buildProgram(words);
  await program.parseAsync(words, { from: 'user' });
} catch (error) {
  // Commander has already written its own message.
  if (!(error instanceof CommanderError)) console.error(`error: ${failureMessage(error)}`);
  process.exitCode = exitCodeOf(error);
}
