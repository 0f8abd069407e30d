import { setPriority } from 'node:os';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { parentPort } from 'node:worker_threads';
import { readLimitedJson } from '../protocol/read-json.ts';
import { compressed, type EnvironmentName, pack, resetDigest, unpack } from './journal-entry.ts';

/** Work that would stop the event loop for too long. Values are packed. */
export type OffLoopTask =
  | { readonly kind: 'read-json'; readonly bytes: Uint8Array; readonly mostEntries: number | undefined }
  | {
      readonly kind: 'write-reset';
      readonly options: unknown;
      readonly about: readonly [sessionId: string, environment: EnvironmentName, episodeId: string];
    }
  | { readonly kind: 'checkpoint'; readonly path: string };

/** The first entry of a journal, as it is written: a long one is compressed. */
export interface WrittenReset {
  readonly text: string;
  readonly digest: string;
}

const decoder = new TextDecoder();

/** The thread gives way to the event loop, which answers everybody. Elsewhere than on Linux this would be of the whole process. */
const NICENESS = 5;
if (process.platform === 'linux') setPriority(NICENESS);

parentPort!.on('message', (task: OffLoopTask) => {
  try {
    const { packed: result, buffers } = pack(answer(task))!;
    parentPort!.postMessage({ result, isPacked: buffers.length > 0 }, buffers);
  } catch (error) {
    parentPort!.postMessage({ error });
  }
});

function answer(task: OffLoopTask): unknown {
  switch (task.kind) {
    case 'read-json':
      return readLimitedJson(decoder.decode(task.bytes), task.mostEntries);
    case 'write-reset': {
      const text = compressed(JSON.stringify(unpack(task.options)));
      return { text, digest: resetDigest(...task.about, text) } satisfies WrittenReset;
    }
    case 'checkpoint': {
      // A file that is gone is not made again.
      const database = new DatabaseSync(`${pathToFileURL(task.path)}?mode=rw`);
      try {
        database.exec('PRAGMA wal_checkpoint(PASSIVE)');
      } finally {
        database.close();
      }
    }
  }
}
