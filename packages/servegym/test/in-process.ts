import { AsyncLocalStorage } from 'node:async_hooks';
import { format } from 'node:util';
import { CommanderError } from 'commander';
import { exitCodeOf, failureMessage } from '../src/cli/failure.ts';
import { buildProgram } from '../src/cli/program.ts';

/** What a command has written, and how it ended. */
export interface Ending {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const running = new AsyncLocalStorage<{ stdout: string; stderr: string }>();
for (const [method, stream] of [
  ['log', 'stdout'],
  ['error', 'stderr'],
] as const) {
  const write = console[method].bind(console);
  console[method] = (...words: unknown[]) => {
    const written = running.getStore();
    if (written === undefined) write(...words);
    else written[stream] += `${format(...words)}\n`;
  };
}

/** Runs a command in this process, as `main.ts` does. Commands that serve, or that signals end, need a process. */
export async function runCommand(...words: string[]): Promise<Ending> {
  const written = { stdout: '', stderr: '' };
  const code = await running.run(written, async () => {
    try {
      const program = await buildProgram(words);
      for (const command of [
        program,
        ...program.commands,
        ...program.commands.flatMap((each) => each.commands),
      ])
        command.configureOutput({
          writeOut: (text) => {
            written.stdout += text;
          },
          writeErr: (text) => {
            written.stderr += text;
          },
        });
      await program.parseAsync(words, { from: 'user' });
      return Number(process.exitCode ?? 0);
    } catch (error) {
      if (!(error instanceof CommanderError)) console.error(`error: ${failureMessage(error)}`);
      return exitCodeOf(error);
    } finally {
      process.exitCode = undefined;
    }
  });
  return { code, ...written };
}
