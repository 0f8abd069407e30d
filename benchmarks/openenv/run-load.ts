import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Longer than any load takes, ms. */
const TIMEOUT_MS = 180_000;

/** Runs a load of this folder in a process of its own and returns what it prints. */
export async function runLoad<Measurement>(
  file: string,
  options: Readonly<Record<string, string | number>>,
): Promise<Measurement> {
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const program = join(import.meta.dirname, file);
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], { timeout: TIMEOUT_MS });
  return JSON.parse(stdout) as Measurement;
}
