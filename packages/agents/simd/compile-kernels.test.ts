import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { compileKernels } from './compile-kernels.ts';

describe('simd-kernels.wasm', () => {
  it('is what kernels.as compiles to (`npm run build:simd -w packages/agents` makes it anew)', async () => {
    const committed = await readFile(new URL('../src/learning/simd-kernels.wasm', import.meta.url));
    assert.deepEqual(Buffer.from(await compileKernels()), committed);
  });
});
