import type { SeasonAnchorsInput, ServeSeasonAnchors } from '@servegym/agents';
import { llmserve, regretScore } from '@servegym/environments';
import type { JobEngine, Json } from '@servegym/jobs';
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

/** Judges the episodes of an environment: `llmserve` beside anchors for each seed, others by their grader. */
export function seasonScoring(
  definition: Definition,
  jobs: JobEngine,
  onProgress?: (share: number) => void,
): SeasonScoring {
  return definition.id === 'llmserve'
    ? serveScoring(definition, jobs, onProgress)
    : graderScoring(definition);
}

function serveScoring(
  definition: Definition,
  jobs: JobEngine,
  onProgress: (share: number) => void = () => {},
): SeasonScoring {
  const graded = graderScoring(definition);
  return {
    async anchors(resets) {
      const list = resets.map(({ task_id, seed }) => {
        const input: SeasonAnchorsInput = { taskId: String(task_id), seed: seed! };
        return { kind: 'season-anchors', input: input as unknown as Json };
      });
      const found = await jobs.run(list, { onProgress: ({ share }) => onProgress(share) });
      return found as unknown as SeasonAnchors[] satisfies readonly unknown[];
    },
    async judge(record, anchors) {
      const { default: standard, constant, clairvoyant } = anchors as unknown as ServeSeasonAnchors;
      const { return: total } = await graded.judge(record, null);
      const returns = {
        ...{ default: standard.return, constant: constant.return, planner: null },
        ...{ clairvoyant: clairvoyant.return, bound: clairvoyant.return, estimated: false },
      };
      return {
        return: total,
        score: regretScore(total, returns, llmserve.anchors.room(String(record.reset.task_id))),
      };
    },
  };
}
