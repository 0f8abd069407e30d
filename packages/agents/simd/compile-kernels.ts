import { readFile, writeFile } from 'node:fs/promises';
import asc from 'assemblyscript/asc';

const SOURCE = new URL('kernels.as', import.meta.url);
const BINARY = new URL('../src/learning/simd-kernels.wasm', import.meta.url);

/** Compiles `kernels.as` to a WebAssembly module. Throws what the compiler has to say when it cannot. */
export async function compileKernels(): Promise<Uint8Array> {
  const source = await readFile(SOURCE, 'utf8');
  let binary: Uint8Array | undefined;
  const { error, stderr } = await asc.main(
    [
      ...['kernels.ts', '--outFile', 'kernels.wasm', '--runtime', 'stub', '--enable', 'simd'],
      ...['--importMemory', '-O3', '--converge', '--noAssert'],
    ],
    {
      readFile: (name) => (name === 'kernels.ts' ? source : null),
      writeFile: (name, contents) => {
        if (name === 'kernels.wasm') binary = contents as Uint8Array;
      },
      listFiles: () => [],
    },
  );
  if (error || !binary) throw new Error(`Cannot compile kernels.as: ${error?.message}\n${stderr.toString()}`);
  return binary;
}

if (import.meta.main) {
  const binary = await compileKernels();
  await writeFile(BINARY, binary);
  console.log(`src/learning/simd-kernels.wasm: ${binary.length} bytes`);
}
