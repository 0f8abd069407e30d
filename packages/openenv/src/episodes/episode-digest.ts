import { createHash } from 'node:crypto';
import type { StepResult } from '../definition.ts';
import { isJsonObject } from '../json/json-object.ts';

/**
 * SHA-256 over what an episode answers: for the reset and for each step one line of JSON with `observation`, `reward`
 * and `done`, keys sorted. JSON keeps every bit of a number, so that equal digests mean equal episodes. `metadata` is
 * left out: it may say more in a later release without the episode being another.
 */
export class EpisodeDigest {
  readonly #hash = createHash('sha256');

  add({ observation, reward, done }: StepResult<object>): void {
    this.#hash.update(`${JSON.stringify(sorted({ observation, reward, done }))}\n`);
  }

  /** `sha256:` and 64 hex digits. Nothing can be added afterwards. */
  text(): string {
    return `sha256:${this.#hash.digest('hex')}`;
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
}
