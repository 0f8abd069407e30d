import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { calibrateKernels, findGpu, findModel, parseKernelTables } from '@servegym/profiles';

const FILES = ['dense.csv', 'per_sequence.csv', 'attention.csv'] as const;

describe('the kernels that the GPU script measures', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'kernels-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  it('are all that a profile from kernel times takes', () => {
    const python =
      process.env.SERVEGYM_PYTHON ??
      assert.fail('SERVEGYM_PYTHON is not set. Run the tests with `npm test`.');
    execFileSync(python, [join(import.meta.dirname, 'llama_kernels.py'), folder, '--plan']);
    const texts = Object.fromEntries(
      FILES.map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
    ) as Record<(typeof FILES)[number], string>;
    const tables = parseKernelTables(texts, folder);
    const { kinds } = calibrateKernels(tables, {
      ...{ gpu: findGpu('H100'), model: findModel('llama-3-8b'), source: 'a plan', command: '-' },
    });
    for (const [kind, { rows }] of Object.entries(kinds)) assert.ok(rows >= 10, `${rows} ${kind}`);
  });
});
