import type { SeasonAnchorsInput, ServeSeasonAnchors } from '@servegym/agents';
import {
  fleetEnvironment,
  inferenceGym,
  regretScore,
  roomToAdapt,
  serveEnvironment,
} from '@servegym/environments';
import type { JobEngine, Json } from '@servegym/jobs';
import {
  type EnvironmentDefinition,
  graderScoring,
  type SeasonAnchors,
  type SeasonScoring,
} from '@servegym/openenv';
import { loadEnvironment } from '../../server/load-environment.ts';
import { readGymOptions } from '../arguments/read-table.ts';
import { InputError } from '../input-error.ts';

type Definition = EnvironmentDefinition<unknown, object, object>;

/** Environments with seasons of their own; any other is a module that exports one. */
const SEASON_ENVIRONMENTS = ['llmserve', 'fleet', 'inferencegym'];

/** The environment of a season. @throws InputError when there is none, or it cannot be replayed */
export async function seasonDefinition(name: string): Promise<Definition> {
  const definition = await findDefinition(name);
  if (definition.replayable === false || !definition.grade) {
    throw new InputError(
      `Expected an environment whose episodes can be replayed and graded, got ${definition.id}`,
    );
  }
  return definition;
}

async function findDefinition(name: string): Promise<Definition> {
  switch (name) {
    case 'llmserve':
      return serveEnvironment() as unknown as Definition;
    case 'fleet':
      return fleetEnvironment() as unknown as Definition;
    case 'inferencegym':
      return inferenceGym(await readGymOptions(undefined)) as unknown as Definition;
    default:
      return loadEnvironment(name, SEASON_ENVIRONMENTS);
  }
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
      return { return: total, score: regretScore(total, returns, roomToAdapt(String(record.reset.task_id))) };
    },
  };
}
