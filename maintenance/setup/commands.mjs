import { spawn } from 'node:child_process';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

/** The root of the checkout. */
export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/**
 * The environment for the project's programs: its own Node and tools come first, and Node keeps the TypeScript that it
 * has compiled, which halves the time a server takes to start. Python keeps what it has compiled beside that, out of the
 * folders of the sources.
 */
export function projectEnvironment(extra = {}) {
  const bin = join(root, 'node_modules', '.bin');
  return {
    NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'node'),
    PYTHONPYCACHEPREFIX: join(root, 'node_modules', '.cache', 'python'),
    ...process.env,
    PATH: `${bin}${delimiter}${process.env.PATH ?? ''}`,
    ...extra,
  };
}

/**
 * Runs a command and keeps what it writes to itself. Resolves to that text; rejects with an error that has it as
 * `output` when the command cannot be started or exits with anything but 0.
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
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        output += chunk;
      });
    const fail = (what) => reject(Object.assign(new Error(`\`${shown}\` ${what}`), { output }));
    child.on('error', (cause) => fail(`cannot run: ${cause.message}`));
    child.on('close', (code, signal) => {
      if (code === 0) resolve(output);
      else fail(`ended with ${signal ?? `exit code ${code}`}`);
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
