import type { Client } from '../api/client.ts';
import type { EpisodeFile, LeaderboardEntry } from '../api/wire.ts';

/** The best runs of a task, or of all. @throws ApiError */
export async function fetchRuns(client: Client, task: string | undefined): Promise<LeaderboardEntry[]> {
  const query = task === undefined ? '' : `?task_id=${encodeURIComponent(task)}`;
  const { entries } = await client.ask(`leaderboard${query}`);
  return entries as LeaderboardEntry[];
}

/** Saves the finished episode of a session. `undefined` when it does not reach the board. @throws ApiError */
export async function saveRun(
  client: Client,
  sessionId: string,
  name: string,
): Promise<LeaderboardEntry | undefined> {
  const { entry } = await client.ask('leaderboard', { session_id: sessionId, name });
  return (entry ?? undefined) as LeaderboardEntry | undefined;
}

/** The episode of a run. @throws ApiError */
export async function fetchEpisode(client: Client, id: number): Promise<EpisodeFile> {
  return (await client.ask(`leaderboard/${id}`)) as unknown as EpisodeFile;
}
