import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';

const run = promisify(execFile);
const folder = import.meta.dirname;

/** A program of the Python that `npm test` sets up. */
function program(name: string): string {
  const python = process.env.SERVEGYM_PYTHON;
  assert.ok(python, 'SERVEGYM_PYTHON names no Python; `npm test` sets it');
  return join(dirname(python), name);
}

describe('what is deployed', () => {
  for (const file of globSync('kubernetes/*.yaml', { cwd: folder }).sort()) {
    // Kustomize reads its own file; the API server never sees it.
    if (file.endsWith('kustomization.yaml')) continue;
    it(`${file} follows the schemas of Kubernetes`, async () => {
      await run(program('kubernetes-validate'), ['--strict', '--quiet', join(folder, file)]);
    });
  }

  it('a manifest that does not follow them is found', async () => {
    const broken = readFileSync(join(folder, 'kubernetes/worker.yaml'), 'utf8').replace(
      'replicas:',
      'replicaz:',
    );
    const path = join(mkdtempSync(join(tmpdir(), 'servegym-manifest-')), 'worker.yaml');
    writeFileSync(path, broken);
    try {
      const asked = run(program('kubernetes-validate'), ['--strict', path]);
      await assert.rejects(asked, ({ stdout, stderr }) => /replicaz/.test(stdout + stderr));
    } finally {
      rmSync(dirname(path), { recursive: true });
    }
  });

  it('kustomization.yaml lists files that are there', () => {
    const text = readFileSync(join(folder, 'kubernetes/kustomization.yaml'), 'utf8');
    const listed = [...text.matchAll(/^ {2}- (\S+\.yaml)$/gm)].map(([, name]) => name);
    assert.ok(listed.length >= 5);
    for (const name of listed) assert.ok(readFileSync(join(folder, 'kubernetes', name!), 'utf8').length > 0);
  });

  it('compose.yaml follows the schema of Compose', async () => {
    await run(program('check-jsonschema'), [
      '--builtin-schema',
      'vendor.compose-spec',
      join(folder, 'compose.yaml'),
    ]);
  });
});
