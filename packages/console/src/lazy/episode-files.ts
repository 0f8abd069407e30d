import type { EpisodeFile } from '../api/wire.ts';
import { EPISODE_FRAGMENT } from '../state/choices.ts';
import type { ConsoleState } from '../state/console-state.ts';
import { playerName, type Run } from '../state/run.ts';

/** Longest author of an episode file, characters. */
const LONGEST_AUTHOR = 200;

/** Names of all who have played a run, in the order of their first windows. */
export function authorOf(state: Pick<ConsoleState, 'policies'>, run: Run): string {
  const drivers = new Set(run.frames.value.flatMap(({ driver }) => driver ?? []));
  return [...drivers]
    .map((driver) => playerName(state, run, driver))
    .join(', ')
    .slice(0, LONGEST_AUTHOR);
}

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

/** @throws TypeError where more comes out than any of our episodes has */
async function through(
  stream: ReadableWritablePair<BufferSource, BufferSource>,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array> {
  let length = 0;
  const limited = new TransformStream<BufferSource, Uint8Array>({
    transform(chunk, controller) {
      length += chunk.byteLength;
      if (length > LONGEST_JSON) controller.error(new TypeError('too long'));
      else controller.enqueue(chunk as Uint8Array);
    },
  });
  const packed = new Blob([bytes]).stream().pipeThrough(stream).pipeThrough(limited);
  return new Uint8Array(await new Response(packed).arrayBuffer());
}
