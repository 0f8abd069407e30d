import { EnvironmentError } from '@servegym/openenv/definition';

/** The episode to step. @throws EnvironmentError `NOT_RESET` or `EPISODE_OVER` */
export function requireOpen<Episode extends { readonly done: boolean; readonly window: number }>(
  episode: Episode | null,
): Episode {
  if (episode === null) {
    throw new EnvironmentError('NOT_RESET', 'No episode has been started: call reset first');
  }
  if (!episode.done) return episode;
  throw new EnvironmentError(
    'EPISODE_OVER',
    `The episode ended after ${episode.window} windows: reset to play another`,
  );
}
