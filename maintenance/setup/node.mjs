import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { announced, root, runQuietly } from './commands.mjs';

/** The oldest Node that runs the project, and so TypeScript directly: `engines` of `servegym`. */
const OLDEST = JSON.parse(readFileSync(join(root, 'packages', 'servegym', 'package.json'), 'utf8'))
  .engines.node.slice(2)
  .split('.')
  .map(Number);

/** The Node that an older one installs beside itself, and the digests of the npm packages that carry it. */
const VERSION = '24.21.0';
const DIGESTS = {
  'linux-x64':
    'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  'linux-arm64':
    'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
};

/**
 * The Node that runs the project: the running one when it is new enough, otherwise one in the user's cache, which all
 * checkouts share. A link in `node_modules/.bin` makes it the Node of `npx` and of npm scripts.
 */
export async function ensureNode() {
  const node = runsTypeScript(process.versions.node) ? process.execPath : await cachedNode();
  const bin = join(root, 'node_modules', '.bin');
  const link = join(bin, 'node');
  if (!existsSync(link) || realpathSync(link) !== realpathSync(node)) {
    mkdirSync(bin, { recursive: true });
    rmSync(link, { force: true });
    symlinkSync(node, link);
  }
  return node;
}

/** This version of Node runs TypeScript directly. */
export function runsTypeScript(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}

/** Path of a Node in `folder`, downloaded through npm when it is not there yet. */
export async function cachedNode(
  folder = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'servegym'),
  platform = `${process.platform}-${process.arch}`,
) {
  const node = join(folder, `node-${VERSION}`, 'node');
  if (existsSync(node)) return node;
  if (!(platform in DIGESTS))
    throw new Error(
      `ServeGym runs on Node ${OLDEST.join('.')} or newer, and this is ${process.versions.node}. npm has no newer one ` +
        `for ${platform}: update Node.`,
    );
  await announced(`Installing Node ${VERSION} into ${folder}`, async () => {
    mkdirSync(folder, { recursive: true });
    const scratch = mkdtempSync(join(folder, 'install-'));
    try {
      await runQuietly('npm', ['pack', '--silent', `node-${platform}@${VERSION}`], { cwd: scratch });
      const tarball = join(scratch, `node-${platform}-${VERSION}.tgz`);
      const digest = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
      if (digest !== DIGESTS[platform])
        throw new Error(
          `Expected node-${platform}@${VERSION} to have the digest ${DIGESTS[platform]}, got ${digest}`,
        );
      await runQuietly('tar', ['-xzf', tarball, 'package/bin/node'], { cwd: scratch });
      mkdirSync(dirname(node), { recursive: true });
      renameSync(join(scratch, 'package', 'bin', 'node'), node);
    } finally {
      rmSync(scratch, { recursive: true });
    }
  });
  return node;
}
