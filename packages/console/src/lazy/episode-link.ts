import type { EpisodeFile } from '../api/wire.ts';
import { EPISODE_FRAGMENT } from '../state/choices.ts';

/** Longer than any episode that a page plays; a link that unpacks to more is not one of ours. */
const LONGEST_JSON = 16_000_000;

/** Packs an episode into the fragment of an address, which browsers do not send to servers. */
export async function writeEpisodeLink(file: EpisodeFile): Promise<string> {
  const packed = await through(
    new CompressionStream('deflate-raw'),
    new TextEncoder().encode(JSON.stringify(file)),
  );
  let text = '';
  for (const byte of packed) text += String.fromCharCode(byte);
  return EPISODE_FRAGMENT + btoa(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

/** Reads what `writeEpisodeLink` wrote. @throws Error in words for a person */
export async function readEpisodeLink(fragment: string): Promise<EpisodeFile> {
  try {
    const text = atob(fragment.slice(EPISODE_FRAGMENT.length).replaceAll('-', '+').replaceAll('_', '/'));
    const packed = Uint8Array.from(text, (character) => character.charCodeAt(0));
    const unpacked = await through(new DecompressionStream('deflate-raw'), packed);
    return readEpisodeFile(new TextDecoder().decode(unpacked));
  } catch {
    throw new Error('The link is damaged: part of it is missing or was changed. Ask for it again.');
  }
}

/** Reads an episode file. What is in it, the server checks. @throws Error in words for a person */
export function readEpisodeFile(text: string): EpisodeFile {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Error('Expected an episode file, which is JSON; this is not.');
  }
  const { reset, actions } = (file ?? {}) as Partial<EpisodeFile>;
  if (typeof reset !== 'object' || reset === null || !Array.isArray(actions))
    throw new Error('Expected an episode file with `reset` and `actions`, as this page saves them.');
  return file as EpisodeFile;
}

async function through(
  stream: { readable: ReadableStream; writable: WritableStream },
  bytes: Uint8Array,
): Promise<Uint8Array> {
  const writer = stream.writable.getWriter();
  const isWritten = writer.write(bytes).then(() => writer.close());
  isWritten.catch(() => {});
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream.readable as unknown as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > LONGEST_JSON) throw new Error('too long');
    chunks.push(chunk);
  }
  await isWritten;
  const all = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}
