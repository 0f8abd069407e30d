import type { Client } from '../api/client.ts';
import type { EpisodeFile, Fields } from '../api/wire.ts';
import { timeOf } from '../charts/traces.ts';
import { type Frame, firstFrame, nextFrame } from '../state/frame.ts';

/** The windows of an episode that the server plays again. @throws ApiError */
export async function replayedFrames(client: Client, file: EpisodeFile): Promise<Frame[]> {
  const { start, steps } = await client.openEpisode(file, 0);
  const frames = start ? [firstFrame(start)] : [];
  for (const step of steps) frames.push(nextFrame(frames[frames.length - 1], step));
  return frames;
}

/** A row for each window, with a header: what was chosen, what came of it, what was observed. RFC 4180. */
export function csvOf(frames: readonly Frame[]): string {
  const rows = frames.map((frame): Fields => {
    const { index, action = {}, observation, reward, totalReward } = frame;
    return {
      window: index,
      time_s: frame.telemetry.windowSeconds === undefined ? undefined : timeOf(frame),
      reward,
      return: totalReward,
      ...flat(action, 'action.'),
      ...flat(observation, ''),
    };
  });
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((name) =>
    rows.some((row) => row[name] !== undefined),
  );
  return [names, ...rows.map((row) => names.map((name) => row[name]))]
    .map((cells) => `${cells.map(cellText).join(',')}\r\n`)
    .join('');
}

/** Columns that are in every row already, or repeat what the other fields have. */
const LEFT_OUT = new Set(['reward', 'done', 'metadata']);

/** The fields of an object, and those of objects in it under their paths. */
function flat(fields: Fields, prefix: string): Fields {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]): [string, unknown][] => {
      if (prefix === '' && LEFT_OUT.has(name)) return [];
      const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
      return isObject
        ? Object.entries(flat(value as Fields, `${prefix}${name}.`))
        : [[`${prefix}${name}`, value]];
    }),
  );
}

function cellText(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
