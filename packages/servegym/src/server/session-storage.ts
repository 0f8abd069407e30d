import { hostname } from 'node:os';
import type { Logger, SessionStore } from '@servegym/openenv';
import { maskUrls } from '@servegym/openenv/mask-urls';
import { InputError } from '../cli/input-error.ts';
import { openSessionFile } from './session-file.ts';

/** Whether sessions are kept in Redis, by the address, and not in a file. */
export function isRedisAddress(fileOrAddress: string): boolean {
  return /^rediss?:\/\//.test(fileOrAddress);
}

/** Any URL; the path of a file on a Windows drive is none. */
const URL_SCHEME = /^[a-z][a-z\d+.-]+:\/\//i;

export interface StorageOptions {
  /** Limit of the file, bytes; each client may have a quarter of it, in Redis too. */
  readonly maxBytes?: number | undefined;
  readonly logger?: Logger | undefined;
}

/** One place where the sessions of several servers are kept. Nothing is opened before the first needs it. */
export class SharedStorage {
  /** A SQLite file, or `redis://...`. */
  readonly address: string;
  readonly #options: StorageOptions;
  #store: Promise<SessionStore> | undefined;
  #users = 0;

  /** @throws InputError for a URL of anything but Redis */
  constructor(address: string, options: StorageOptions = {}) {
    if (URL_SCHEME.test(address) && !isRedisAddress(address)) {
      throw new InputError(
        `Expected --store or SERVEGYM_STORE to be a file, redis://, rediss:// or \`memory\`, got \`${maskUrls(address)}\`. Sessions are kept in SQLite files and in Redis only`,
      );
    }
    this.address = address;
    this.#options = options;
  }

  /** Sentences on who else uses the file, for the person who starts the server. */
  async notes(): Promise<string[]> {
    const { sharedWith = [], lastProgram } = (await this.#store)?.condition?.() ?? {};
    const shared = sharedWith.map(
      ({ process, host, program }) =>
        `process ${process}${host === hostname() ? '' : ` on ${host}`} (${program}) keeps its sessions in the same place. To keep them apart, choose another file with --store`,
    );
    const wasOther = sharedWith.length === 0 && lastProgram;
    return wasOther ? [`the sessions there were last served by ${lastProgram}`] : shared;
  }

  /** The store for one more user; it closes when the last of them closes theirs. @throws InputError when it cannot be used */
  async share(): Promise<SessionStore> {
    this.#store ??= openStorage(this.address, this.#options);
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
async function openStorage(fileOrAddress: string, options: StorageOptions): Promise<SessionStore> {
  if (!isRedisAddress(fileOrAddress)) return openSessionFile(fileOrAddress, options);
  const { maxBytes, logger } = options;
  const { openRedisStore } = await import('@servegym/openenv/redis').catch((error) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new InputError(
      'Sessions in Redis need the package ioredis, which is not installed. Install it beside servegym: npm install ioredis',
    );
  });
  try {
    return await openRedisStore(fileOrAddress, {
      ...(maxBytes !== undefined && { maxClientBytes: maxBytes / 4 }),
      logger,
    });
  } catch (error) {
    throw new InputError(
      `Sessions cannot be kept in Redis: ${(error as Error).message}. Start Redis there, or correct --store or SERVEGYM_STORE`,
      { cause: error },
    );
  }
}
