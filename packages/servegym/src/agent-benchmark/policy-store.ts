import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SHIPPED_FORMATS } from '@servegym/agents';
import type { LearningRun } from './learn-policy.ts';

/** Keeps learned policies in a folder, so that a benchmark that was stopped goes on where it was. */
export class PolicyStore {
  readonly #folder: string;

  constructor(folder: string) {
    mkdirSync(folder, { recursive: true });
    this.#folder = folder;
  }

  read(run: LearningRun): Uint8Array | undefined {
    const path = this.#path(run);
    return existsSync(path) ? readFileSync(path) : undefined;
  }

  write(run: LearningRun, file: Uint8Array): void {
    const path = this.#path(run);
    writeFileSync(`${path}.part`, file);
    renameSync(`${path}.part`, path);
  }

  #path({ algorithm, taskId, seed, steps, teacher, lessons }: LearningRun): string {
    const how = algorithm === 'distilled' ? `${steps}-${teacher}-${lessons}` : steps;
    return join(this.#folder, `${algorithm}-${taskId}-${how}-seed${seed}.${SHIPPED_FORMATS[algorithm]}`);
  }
}
