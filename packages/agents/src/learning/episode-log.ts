import { RUNNING } from './learning-environment.ts';
import type { Rollout } from './rollout.ts';
import type { RunningEpisode } from './rollout-player.ts';

/** Keeps what the environments have done in the episodes that run, so that they can be brought there again. */
export class EpisodeLog {
  readonly #headCount: number;
  readonly #running: { episode: number; actions: number[] }[];

  constructor(environments: number, headCount: number, episodes?: readonly RunningEpisode[]) {
    this.#headCount = headCount;
    this.#running = Array.from({ length: environments }, (_, e) => ({
      episode: episodes?.[e]?.episode ?? 0,
      actions: [...(episodes?.[e]?.actions ?? [])],
    }));
  }

  append({ environments, steps, actions, ends }: Rollout): void {
    const heads = this.#headCount;
    for (let at = 0; at < environments * steps; at++) {
      const running = this.#running[at % environments]!;
      for (let head = 0; head < heads; head++) running.actions.push(actions[at * heads + head]!);
      if (ends[at] === RUNNING) continue;
      running.episode++;
      running.actions.length = 0;
    }
  }

  episodes(): RunningEpisode[] {
    return this.#running.map(({ episode, actions }) => ({ episode, actions: [...actions] }));
  }
}
