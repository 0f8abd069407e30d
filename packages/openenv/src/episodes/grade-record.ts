import type { Caller, EnvironmentDefinition, EpisodeRecord } from '../definition.ts';
import type { GradeBody } from '../protocol/http-body.ts';

/** Grades a record of an environment with a grader. The answer names the options that it was replayed on. */
export async function gradeRecord(
  definition: EnvironmentDefinition<unknown, object, object>,
  record: EpisodeRecord,
  caller?: Caller,
): Promise<Required<GradeBody>> {
  const grade = await definition.grade!(record, caller);
  const { episode_id, ...options } = record.reset;
  const replayed = Object.entries(options).filter(
    ([, value]) => value !== undefined && typeof value !== 'object',
  );
  return { ...grade, replayed: Object.fromEntries(replayed) };
}
