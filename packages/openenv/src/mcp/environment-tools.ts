import { type Caller, type EnvironmentDefinition, EnvironmentError } from '../definition.ts';
import { gradeRecord } from '../episodes/grade-record.ts';
import type { ToolCallResult, ToolListing } from '../protocol/json-rpc.ts';
import type { JsonSchema } from '../protocol/json-schema.ts';
import type { Session } from '../sessions/session.ts';
import { actionReader } from '../validation/action-reader.ts';
import { toJsonSchema } from '../validation/json-schemas.ts';
import { resetOptionsReader, resetOptionsSchema } from '../validation/reset-options-reader.ts';

/** A tool through which an agent plays a session. */
export interface EnvironmentTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  /** Whether the tool only looks. */
  readonly readOnly: boolean;
  readonly needsSession: boolean;
  readonly startsEpisode: boolean;
  /** @throws InvalidInputError, EnvironmentError, or whatever the environment throws. */
  call(session: Session, args: unknown, caller?: Caller): unknown;
}

const NO_ARGUMENTS: JsonSchema = { type: 'object', properties: {}, additionalProperties: false };

/**
 * The tools of an environment, made from the schemas that it has anyway. `reset`, `step`, `state` and `close` are
 * reserved in OpenEnv, hence the longer names. In production the episode is started for the agent, not by it.
 */
export function environmentTools(
  definition: EnvironmentDefinition<unknown, object, object>,
  mode: 'simulation' | 'production',
): readonly EnvironmentTool[] {
  const readOptions = resetOptionsReader(definition);
  const readAction = actionReader(definition.action);
  const startEpisode: EnvironmentTool = {
    name: 'start_episode',
    title: 'Start an episode',
    description: `Starts a new episode of ${definition.name} and returns the first observation.`,
    inputSchema: toJsonSchema(resetOptionsSchema(definition), 'input'),
    readOnly: false,
    needsSession: true,
    startsEpisode: true,
    call: (session, args) => session.reset(readOptions(args)),
  };
  const takeAction: EnvironmentTool = {
    name: 'take_action',
    title: 'Take an action',
    description: `Plays one action in ${definition.name} and returns the observation, the reward and whether the episode is over.`,
    inputSchema: { ...toJsonSchema(definition.action, 'input'), type: 'object' },
    readOnly: false,
    needsSession: true,
    startsEpisode: false,
    async call(session, args) {
      const action = readAction(args);
      if (mode === 'production' && session.record === null) await session.reset(readOptions({}));
      return session.step(action);
    },
  };
  const getState: EnvironmentTool = {
    name: 'get_state',
    title: 'Look at the state',
    description: `The state of the current episode of ${definition.name}.`,
    inputSchema: NO_ARGUMENTS,
    readOnly: true,
    needsSession: true,
    startsEpisode: false,
    call: (session) => session.state(),
  };
  const { tasks } = definition;
  const listTasks: EnvironmentTool = {
    name: 'list_tasks',
    title: 'List the tasks',
    description: `The tasks of ${definition.name}.`,
    inputSchema: NO_ARGUMENTS,
    readOnly: true,
    needsSession: false,
    startsEpisode: false,
    call: () => ({ tasks }),
  };
  const gradeEpisode: EnvironmentTool = {
    name: 'grade_episode',
    title: 'Grade the episode',
    description: 'Grades what was played in the current episode, with a score between 0 and 1.',
    inputSchema: NO_ARGUMENTS,
    readOnly: true,
    needsSession: true,
    startsEpisode: false,
    call(session, _args, caller) {
      if (session.record === null) {
        throw new EnvironmentError('NOT_RESET', 'There is no episode to grade yet. Start one first.');
      }
      return gradeRecord(definition, session.record, caller);
    },
  };
  return [
    ...(mode === 'simulation' ? [startEpisode] : []),
    takeAction,
    getState,
    ...(tasks ? [listTasks] : []),
    ...(definition.grade ? [gradeEpisode] : []),
  ];
}

export function toolListing({ name, title, description, inputSchema }: EnvironmentTool): ToolListing {
  return { name, title, description, input_schema: inputSchema, inputSchema };
}

/** The value of a tool in every spelling that OpenEnv clients read. */
export function toolCallResult(value: unknown): ToolCallResult {
  return {
    content: [{ type: 'text', text: JSON.stringify(value) }],
    structured_content: value,
    structuredContent: value,
    data: value,
    is_error: false,
    isError: false,
  };
}
