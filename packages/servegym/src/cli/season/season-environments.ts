import { agentsOf } from '@servegym/agents';
import { type EnvironmentId, findEnvironment } from '@servegym/environments';
import type { JobEngine } from '@servegym/jobs';
import {
  type EnvironmentDefinition,
  graderScoring,
  type SeasonAnchors,
  type SeasonScoring,
} from '@servegym/openenv';
import { openEnvironment } from '../../server/open-environment.ts';
import { InputError } from '../input-error.ts';

type Definition = EnvironmentDefinition<unknown, object, object>;

/** The environment of a season. @throws InputError when there is none, or it cannot be replayed */
export async function seasonDefinition(name: string): Promise<Definition> {
  const { definition } = await openEnvironment(name);
  if (definition.replayable === false || !definition.grade) {
    throw new InputError(
      `Expected an environment whose episodes can be replayed and graded, got ${definition.id}`,
    );
  }
  return definition;
}

/** Judges the episodes of an environment: beside anchors for each seed where it has them, else by its grader. */
export function seasonScoring(
  definition: Definition,
  jobs: JobEngine,
  onProgress: (share: number) => void = () => {},
): SeasonScoring {
  const graded = graderScoring(definition);
  const season = findEnvironment(definition.id) && agentsOf(definition.id as EnvironmentId).season;
  if (season === undefined) return graded;
  return {
    async anchors(resets) {
      const episodes = resets.map(({ task_id, seed }) => ({ taskId: String(task_id), seed: seed! }));
      return (await season.anchors(jobs, episodes, onProgress)) as unknown as SeasonAnchors[];
    },
    async judge(record, anchors) {
      const { return: total } = await graded.judge(record, null);
      return { return: total, score: season.score(total, String(record.reset.task_id), anchors) };
    },
  };
}
