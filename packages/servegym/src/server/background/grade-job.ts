import type { JobContext, Json } from '@servegym/jobs';
import type { EpisodeRecord } from '@servegym/openenv';
import { openServed, type ServedEnvironment } from './served-environment.ts';

export interface GradeInput {
  readonly environment: ServedEnvironment;
  readonly record: EpisodeRecord;
}

/** Grades an episode. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { environment, record } = input as unknown as GradeInput;
  const { definition } = await openServed(environment, record.reset, context);
  return (await definition.grade!(record)) as unknown as Json;
}
