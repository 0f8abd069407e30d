import type { GradeBody, MetadataBody, SchemaBody, TasksBody } from '@servegym/openenv/protocol';

export type { SchemaBody };
export type EnvironmentInfo = Pick<MetadataBody, 'name' | 'description' | 'version'>;
export type Task = TasksBody['tasks'][number];
export type Grade = GradeBody;

/** A JSON object whose fields the reader checks one by one. */
export type Fields = Readonly<Record<string, unknown>>;

/** One entry of `GET /policies`. */
export interface PolicyInfo {
  readonly name: string;
  readonly title: string;
  readonly description: string;
}

/** What a reset or a step answers. `reward` is `null` right after a reset. */
export interface Outcome {
  readonly observation: Fields;
  readonly reward: number | null;
  readonly done: boolean;
  readonly metadata: Fields;
}

/** A step together with the action that was played. */
export interface PlayedStep extends Outcome {
  readonly action: Fields;
}

/** A session at the start of an episode, and its first observation. */
export interface StartedSession extends Outcome {
  readonly sessionId: string;
}
