import { announced } from '../progress.mjs';
import { runQuietly } from '../quiet-command.mjs';
import { findProgram } from './programs.mjs';

// apt-get takes one lock for the whole machine, so installations queue up behind each other.
let queue = Promise.resolve();
let indexIsFresh = false;

/**
 * Installs packages of Debian (or a descendant) with apt-get, through sudo when not root.
 * Throws, saying what to install by hand, where that is not possible.
 *
 * @param {string[]} packages
 */
export function installDebianPackages(packages) {
  const installation = queue.then(() => install(packages));
  queue = installation.catch(() => {});
  return installation;
}

async function install(packages) {
  const names = packages.join(' ');
  if (!findProgram('apt-get')) {
    throw new Error(
      `\`${names}\` is missing, and there is no apt-get here to install it. Install it by hand.`,
    );
  }
  const isRoot = process.getuid?.() === 0;
  if (!isRoot && !findProgram('sudo')) {
    throw new Error(`\`${names}\` is missing. As root, run: apt-get install ${names}`);
  }
  const asRoot = isRoot ? [] : process.stdin.isTTY ? ['sudo'] : ['sudo', '-n'];
  const aptGet = async (...args) => {
    const [command, ...rest] = [
      ...asRoot,
      'env',
      'DEBIAN_FRONTEND=noninteractive',
      'apt-get',
      '-qq',
      ...args,
    ];
    await runQuietly(command, rest, {
      stdin: asRoot.length > 0 && process.stdin.isTTY ? 'inherit' : 'ignore',
    });
  };
  await announced(`Installing ${names} with apt-get`, async () => {
    if (!indexIsFresh) await aptGet('update');
    indexIsFresh = true;
    await aptGet('install', '-y', '--no-install-recommends', ...packages);
  });
}
