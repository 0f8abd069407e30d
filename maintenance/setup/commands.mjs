import { spawn } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';

/** A command ended badly; `output` is all that it wrote. */
export class CommandError extends Error {
  name = 'CommandError';

  constructor(message, output) {
    super(message);
    this.output = output;
  }
}

/**
 * Runs a command and keeps what it writes to itself. Resolves to that text; rejects with a `CommandError` that
 * carries it when the command cannot be started or exits with anything but 0.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, stdin?: 'ignore' | 'inherit' }} [options]
 * @returns {Promise<string>}
 */
export function runQuietly(command, args, { cwd, env = process.env, stdin = 'ignore' } = {}) {
  const shown = [command, ...args].join(' ');
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...env, NO_COLOR: '1' },
      stdio: [stdin, 'pipe', 'pipe'],
    });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    child.stderr.on('data', (chunk) => {
      output += chunk;
    });
    child.on('error', (cause) =>
      reject(new CommandError(`\`${shown}\` cannot run: ${cause.message}`, output)),
    );
    child.on('close', (code, signal) => {
      if (code === 0) resolve(output);
      else reject(new CommandError(`\`${shown}\` ended with ${signal ?? `exit code ${code}`}`, output));
    });
  });
}

/** Seconds since `startedAt` (of `performance.now()`), for a person to read. */
export function secondsSince(startedAt) {
  return `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
}

/**
 * Says what long thing begins and how long it took.
 *
 * @template T
 * @param {string} what for instance `Installing npm packages`
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function announced(what, work) {
  const startedAt = performance.now();
  console.log(`${what} ...`);
  const result = await work();
  console.log(`${what}: done in ${secondsSince(startedAt)}`);
  return result;
}

/** Tells a person why something could not be done, with the output of the command that failed. */
export function explain(error) {
  const lines = [error.message];
  if (error.output) lines.push(stripVTControlCharacters(error.output).trim().replace(/^/gm, '  '));
  return lines.join('\n');
}
