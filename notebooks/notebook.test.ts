import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';

const python =
  process.env.SERVEGYM_PYTHON ?? assert.fail('SERVEGYM_PYTHON is not set. Run the tests with `npm test`.');

/** Runs every cell in a kernel, as a person would from top to bottom, and prints what each has shown. */
const EXECUTE = `
import json, sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
NotebookClient(notebook, timeout=200, kernel_name="python3", resources={"metadata": {"path": sys.argv[2]}}).execute()
print(json.dumps([
    ["".join(output.get("text", "") or " ".join(output.get("data", {})) for output in cell.get("outputs", []))]
    for cell in notebook.cells
]))
`;

it('the notebook runs from top to bottom, learns, and draws its plot', async () => {
  const { stdout } = await promisify(execFile)(
    python,
    ['-c', EXECUTE, join(import.meta.dirname, 'servegym-demo.ipynb'), import.meta.dirname],
    {
      maxBuffer: 2 ** 26,
      env: {
        ...process.env,
        PYTHONPATH: `${resolve(import.meta.dirname, '../clients/python/src')}:${process.env.PYTHONPATH ?? ''}`,
        JUPYTER_PLATFORM_DIRS: '1',
        MPLBACKEND: 'module://matplotlib_inline.backend_inline',
      },
    },
  );
  const shown: string[][] = JSON.parse(stdout);
  assert.equal(shown.length, 10);
  const [first, last] = [...shown[8][0].matchAll(/mean reward (-?[\d.]+)/g)]
    .map(([, mean]) => Number(mean))
    .filter((_, index, all) => index === 0 || index === all.length - 1);
  assert.ok(last! > first!, `the mean reward went from ${first} to ${last}`);
  assert.match(shown[9][0], /image\/png/);
});
