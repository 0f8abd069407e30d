import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Json } from '@servegym/jobs';

/** Keeps what a benchmark has learned and played in a folder, so that one that was stopped goes on where it was. */
export class BenchmarkCache {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The file of that name; has it made, and kept, where there is none. */
  async file(name: string, make: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const kept = this.readFile(name);
    if (kept !== undefined) return kept;
    const file = await make();
    this.writeFile(name, file);
    return file;
  }

  readFile(name: string): Uint8Array | undefined {
    const path = join(this.#folder, name);
    return existsSync(path) ? readFileSync(path) : undefined;
  }

  writeFile(name: string, file: Uint8Array): void {
    const path = join(this.#folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(`${path}.part`, file);
    renameSync(`${path}.part`, path);
  }

  /**
   * Findings for each seed under that name.
   * @param dependsOn all that the findings depend on beside the seed: under anything else, they are forgotten
   */
  findings<Finding extends Json>(name: string, dependsOn: Json): SeedFindings<Finding> {
    return new SeedFindings(this, `${name}.json`, digest(dependsOn));
  }
}

/** Findings for seeds of some traffic. */
class SeedFindings<Finding extends Json> {
  readonly #cache: BenchmarkCache;
  readonly #name: string;
  readonly #dependsOn: string;
  readonly #found: Record<string, Finding>;

  constructor(cache: BenchmarkCache, name: string, dependsOn: string) {
    this.#cache = cache;
    this.#name = name;
    this.#dependsOn = dependsOn;
    const file = cache.readFile(name);
    const kept = file && (JSON.parse(Buffer.from(file).toString()) as { dependsOn: string; found: Json });
    this.#found = kept?.dependsOn === dependsOn ? (kept.found as Record<string, Finding>) : {};
  }

  has(seed: number): boolean {
    return this.#found[seed] !== undefined;
  }

  /** Of seeds that there is something of. */
  of(seeds: readonly number[]): Finding[] {
    return seeds.map((seed) => this.#found[seed]);
  }

  add(seeds: readonly number[], findings: readonly Finding[]): void {
    for (const [i, seed] of seeds.entries()) this.#found[seed] = findings[i];
    const text = JSON.stringify({ dependsOn: this.#dependsOn, found: this.#found });
    this.#cache.writeFile(this.#name, Buffer.from(text));
  }
}

function digest(value: Json): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
}
