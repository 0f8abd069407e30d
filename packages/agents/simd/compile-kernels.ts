import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const BINARY = new URL('../src/learning/simd-kernels.wasm', import.meta.url);

/**
 * Compiles `kernels.as` to a WebAssembly module. The compiler takes 100 MB, so it is installed from the lock file beside
 * this module into a folder that is deleted afterwards.
 */
export async function compileKernels(): Promise<Uint8Array> {
  const folder = await mkdtemp(join(tmpdir(), 'servegym-kernels-'));
  const run = (command: string, args: readonly string[]) =>
    promisify(execFile)(command, args, { cwd: folder }).catch(
      (error: { message: string; stdout: string }) => {
        throw new Error(`Cannot compile kernels.as: ${error.message}${error.stdout}`);
      },
    );
  try {
    for (const [source, name] of [
      ['package.json', 'package.json'],
      ['package-lock.json', 'package-lock.json'],
      ['kernels.as', 'kernels.ts'],
    ] as const)
      await cp(join(import.meta.dirname, source), join(folder, name));
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']);
    await run(process.execPath, [
      ...['node_modules/assemblyscript/bin/asc.js', 'kernels.ts', '--outFile', 'kernels.wasm'],
      ...['--runtime', 'stub', '--enable', 'simd', '--importMemory', '-O3', '--converge', '--noAssert'],
    ]);
    return await readFile(join(folder, 'kernels.wasm'));
  } finally {
    await rm(folder, { recursive: true });
  }
}

if (process.argv[1] === import.meta.filename) {
  const binary = await compileKernels();
  await writeFile(BINARY, binary);
  console.log(`src/learning/simd-kernels.wasm: ${binary.length} bytes`);
}
