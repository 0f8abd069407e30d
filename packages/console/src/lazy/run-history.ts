import { signal } from '@preact/signals';
import type { Client } from '../api/client.ts';
import type { EpisodeFile, Fields } from '../api/wire.ts';
import { timeOf } from '../charts/chart-spec.ts';
import { EPISODE_FRAGMENT } from '../state/choices.ts';
import type { ConsoleState } from '../state/console-state.ts';
import { type Frame, firstFrame, nextFrame } from '../state/frame.ts';
import { playerName, type Run } from '../state/run.ts';

/** A finished run that this browser keeps. */
export interface KeptRun {
  readonly id: string;
  /** End of the run, ms since 1970. */
  readonly at: number;
  readonly environment: string;
  readonly task?: string;
  readonly seed?: number;
  /** Further options of the reset. */
  readonly options: Fields;
  readonly player: string;
  /** Name that the person gave it. */
  readonly name?: string;
  readonly isPinned?: boolean;
  readonly windows: number;
  readonly total: number;
  readonly score?: number;
  /** The episode as the fragment of an address; absent where it cannot be replayed, or is too long to be kept. */
  readonly episode?: string;
}

const STORAGE_KEY = 'servegym.runs';
/** Runs kept beside the pinned ones; the oldest give way. */
const MOST_RUNS = 30;
const MOST_PINNED = 20;
/** Longest fragment that is kept, characters. An episode of 240 windows has about 5,000. */
const LONGEST_EPISODE = 60_000;
/** Longest name of a run, characters. */
export const LONGEST_NAME = 60;

/**
 * Runs of all environments of this origin, the newest first.
 * @param storage where the runs are kept; without it, or where it is full or closed, they last as long as the page
 */
export function createRunHistory(storage: () => Pick<Storage, 'getItem' | 'setItem'>) {
  const runs = signal<readonly KeptRun[]>([]);
  /** Another tab may have changed what is kept. */
  const read = () => {
    try {
      const kept = JSON.parse(storage().getItem(STORAGE_KEY) ?? '[]');
      if (Array.isArray(kept)) runs.value = kept.filter(isKeptRun);
    } catch {
      // What is on the page stays.
    }
  };
  const write = (changed: readonly KeptRun[]) => {
    const others = changed.filter(({ isPinned }) => !isPinned).slice(0, MOST_RUNS);
    runs.value = changed.filter((run) => run.isPinned || others.includes(run));
    try {
      storage().setItem(STORAGE_KEY, JSON.stringify(runs.value));
    } catch {
      // Full or closed.
    }
  };
  read();
  return {
    runs,
    add(run: KeptRun): void {
      read();
      write([run, ...runs.value]);
    },
    /** Changes the name or the pin of a run. No more than `MOST_PINNED` runs are pinned. */
    change(id: string, changed: Pick<KeptRun, 'name' | 'isPinned'>): void {
      read();
      const pinned = runs.value.filter(({ isPinned }) => isPinned).length;
      if (changed.isPinned && pinned >= MOST_PINNED) return;
      write(runs.value.map((run) => (run.id === id ? { ...run, ...changed } : run)));
    },
    remove(id: string): void {
      read();
      write(runs.value.filter((run) => run.id !== id));
    },
  };
}

function isKeptRun(run: Partial<KeptRun> | null): run is KeptRun {
  return (
    typeof run?.id === 'string' &&
    typeof run.environment === 'string' &&
    typeof run.player === 'string' &&
    typeof run.total === 'number' &&
    typeof run.windows === 'number'
  );
}

export const runHistory = createRunHistory(() => localStorage);

/** A finished run as it stands now: the page may start its next episode before it is kept. */
interface FinishedRun extends Pick<KeptRun, 'environment' | 'windows' | 'total' | 'score'> {
  readonly file: EpisodeFile;
}

/** Keeps a finished run in the history. */
export async function keepRun(finished: FinishedRun): Promise<void> {
  const { file, ...rest } = finished;
  const { task_id: task, seed, ...options } = file.reset;
  const episode = await writeEpisodeLink(file);
  runHistory.add({
    ...rest,
    id: crypto.randomUUID(),
    at: Date.now(),
    ...(task !== undefined && { task: String(task) }),
    ...(typeof seed === 'number' && { seed }),
    options,
    player: file.author ?? '',
    ...(episode.length <= LONGEST_EPISODE && { episode }),
  });
}

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

/** The windows of an episode that the server plays again. @throws ApiError */
export async function replayedFrames(client: Client, file: EpisodeFile): Promise<Frame[]> {
  const { start, steps } = await client.openEpisode(file, 0);
  const frames = start ? [firstFrame(start)] : [];
  for (const step of steps) frames.push(nextFrame(frames[frames.length - 1], step));
  return frames;
}

/** A row of CSV for each window: what was chosen, what came of it, what was observed. */
export function rowsOf(frames: readonly Frame[]): Fields[] {
  return frames.map((frame) => {
    const { index, action, observation, reward, totalReward } = frame;
    // Columns that are in every row already, or repeat what the other fields have.
    const { reward: _, done: __, metadata: ___, ...observed } = observation;
    return {
      window: index,
      time_s: frame.telemetry.windowSeconds === undefined ? undefined : timeOf(frame),
      reward,
      return: totalReward,
      action,
      ...observed,
    };
  });
}
