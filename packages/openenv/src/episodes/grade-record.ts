import type { Caller, EnvironmentDefinition, EpisodeRecord } from '../definition.ts';
import type { GradeBody } from '../protocol/http-body.ts';

/** Grades a record, where the environment can, and tells what it was replayed on. */
export async function gradeRecord(
  definition: EnvironmentDefinition<unknown, object, object>,
  record: EpisodeRecord,
  caller?: Caller,
): Promise<GradeBody | undefined> {
  const grade = await definition.grade?.(record, caller);
  if (grade === undefined) return undefined;
  const { episode_id, ...options } = record.reset;
  const replayed = Object.entries(options).filter(
    ([, value]) => value !== undefined && typeof value !== 'object',
  );
  return { ...grade, replayed: Object.fromEntries(replayed) };
}
