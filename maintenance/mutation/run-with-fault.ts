import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Fault } from './faulty-source.ts';

/** As `npm test` sets them; the Python is that of a checkout that has been set up. */
const ENVIRONMENT = {
  SERVEGYM_STORE: 'memory',
  SERVEGYM_PYTHON: resolve(import.meta.dirname, '../../.venv/bin/python'),
};
const HOOK = new URL('insert-fault.mjs', import.meta.url).href;

/** End of a test file: `hung` is one that was stopped at the time limit. */
export type Outcome = 'passed' | 'failed' | 'hung';

/**
 * Runs a test file on its own, with a fault in one module if there is one. All that it started is killed at its end.
 * @param limitS time limit, s
 */
export async function runWithFault(
  testPath: string,
  limitS: number,
  fault?: Fault & { readonly path: string },
): Promise<Outcome> {
  const { NODE_OPTIONS = '', ...others } = process.env;
  const child = spawn(process.execPath, [testPath], {
    // A process group of its own, to be killed as a whole.
    detached: true,
    stdio: 'ignore',
    env: {
      ...ENVIRONMENT,
      ...others,
      NODE_OPTIONS: fault === undefined ? NODE_OPTIONS : `${NODE_OPTIONS} --import ${HOOK}`,
      ...(fault && {
        SERVEGYM_FAULT: JSON.stringify({
          url: pathToFileURL(fault.path).href,
          search: fault.search,
          replace: fault.replace,
        }),
      }),
    },
  });
  let isHung = false;
  const killGroup = () => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // Nothing of the group is left.
    }
  };
  const timer = setTimeout(() => {
    isHung = true;
    killGroup();
  }, 1000 * limitS);
  const [code] = await once(child, 'exit');
  clearTimeout(timer);
  killGroup();
  return isHung ? 'hung' : code === 0 ? 'passed' : 'failed';
}
