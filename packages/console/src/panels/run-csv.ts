import type { Client } from '../api/client.ts';
import type { EpisodeFile, Fields } from '../api/wire.ts';
import { timeOf } from '../charts/chart-spec.ts';
import { type Frame, firstFrame, nextFrame } from '../state/frame.ts';

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
