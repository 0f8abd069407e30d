import { createHash } from 'node:crypto';
import { appendFileSync, closeSync, existsSync, openSync, readFileSync, truncateSync } from 'node:fs';
import type { Json } from '@servegym/jobs';
import { TuningError } from './slo.ts';

/**
 * Finished evaluations in a file, a line of JSON each, so that a search that was interrupted goes on from them. Lines are
 * written as evaluations finish; a last line that was cut off is dropped.
 */
export class EvaluationRecord {
  readonly #path: string;
  readonly #known = new Map<string, Json>();

  /** @throws TuningError `INVALID_EVALUATIONS` for a file of another version or another kind, which stays as it is */
  constructor(path: string, version: string) {
    this.#path = path;
    const fail = (got: string) => {
      const expected = `evaluations of version ${version}`;
      return new TuningError(
        'INVALID_EVALUATIONS',
        `${path}: expected ${expected}, got ${got}; name another file`,
      );
    };
    const head = JSON.stringify({ evaluations_of: version });
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    const whole = text.slice(0, text.lastIndexOf('\n') + 1);
    const [first, ...lines] = whole.split('\n');
    if (whole === '') {
      if (!head.startsWith(text)) throw fail('another file');
      closeSync(openSync(path, 'a'));
      truncateSync(path, 0);
      appendFileSync(path, `${head}\n`);
      return;
    }
    if (first !== head) throw fail(first.slice(0, 80));
    for (const [i, line] of lines.slice(0, -1).entries()) {
      try {
        const [key, result] = JSON.parse(line);
        this.#known.set(key, result);
      } catch {
        throw fail(`a line ${i + 2} that is no evaluation`);
      }
    }
    truncateSync(path, Buffer.byteLength(whole));
  }

  get size(): number {
    return this.#known.size;
  }

  get(key: string): Json | undefined {
    return this.#known.get(key);
  }

  add(results: readonly (readonly [key: string, result: Json])[]): void {
    const fresh = results.filter(([key]) => !this.#known.has(key));
    for (const [key, result] of fresh) this.#known.set(key, result);
    appendFileSync(this.#path, fresh.map((each) => `${JSON.stringify(each)}\n`).join(''));
  }
}

/** A name for equal evaluations. */
export function evaluationKey(parts: Json): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 40);
}
