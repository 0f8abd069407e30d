import type { SessionStore } from '@servegym/openenv';
import { maskUrls } from '@servegym/openenv/mask-urls';
import { InputError } from '../cli/input-error.ts';
import { openSessionFile } from './session-file.ts';

/** Whether sessions are kept in Redis, by the address, and not in a file. */
export function isRedisAddress(fileOrAddress: string): boolean {
  return /^rediss?:\/\//.test(fileOrAddress);
}

/** Any URL; the path of a file on a Windows drive is none. */
const URL_SCHEME = /^[a-z][a-z\d+.-]+:\/\//i;

/** One place where the sessions of several servers are kept. Nothing is opened before the first needs it. */
export class SharedStorage {
  /** A SQLite file, or `redis://...`. */
  readonly address: string;
  #store: Promise<SessionStore> | undefined;
  #users = 0;

  /** @throws InputError for a URL of anything but Redis */
  constructor(address: string) {
    if (URL_SCHEME.test(address) && !isRedisAddress(address)) {
      throw new InputError(
        `Expected --store or SERVEGYM_STORE to be a file, redis://, rediss:// or \`memory\`, got \`${maskUrls(address)}\`. Sessions are kept in SQLite files and in Redis only`,
      );
    }
    this.address = address;
  }

  /** The store for one more user; it closes when the last of them closes theirs. @throws InputError when it cannot be used */
  async share(): Promise<SessionStore> {
    this.#store ??= openStorage(this.address);
    const store = await this.#store;
    this.#users++;
    let isOpen = true;
    return {
      open: (id, environment, client) => store.open(id, environment, client),
      take: (id) => store.take(id),
      remove: (id) => store.remove(id),
      condition: () => store.condition!(),
      close: async () => {
        if (!isOpen) return;
        isOpen = false;
        this.#users--;
        if (this.#users === 0) await store.close();
      },
    };
  }
}

/** Opens where sessions are kept: a SQLite file, or Redis by its address. @throws InputError when it cannot be used */
async function openStorage(fileOrAddress: string): Promise<SessionStore> {
  if (!isRedisAddress(fileOrAddress)) return openSessionFile(fileOrAddress);
  const { openRedisStore } = await import('@servegym/openenv/redis');
  try {
    return await openRedisStore(fileOrAddress);
  } catch (error) {
    throw new InputError(
      `Sessions cannot be kept in Redis: ${(error as Error).message}. Start Redis there, or correct --store or SERVEGYM_STORE`,
      { cause: error },
    );
  }
}
