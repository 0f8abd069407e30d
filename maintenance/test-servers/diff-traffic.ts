import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RandomStream } from '@servegym/simulator';

/** Writes a trace of 800 requests, 8 a second, into a folder. Gives its path. */
export function writeTrace(folder: string): string {
  const random = new RandomStream(5, 'trace');
  let at = 0;
  const rows = Array.from({ length: 800 }, () => {
    at += random.exponential(0.125);
    return `${at.toFixed(4)},${random.integer(50, 1500)},${random.integer(20, 300)}`;
  });
  const path = join(folder, 'trace.csv');
  writeFileSync(path, `arrival,input,output\n${rows.join('\n')}\n`);
  return path;
}

/** A deployment that serves it, with further flags. */
export const line = (flags = '') => `vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 128 ${flags}`;
