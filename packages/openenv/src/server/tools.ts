import {
  type Caller,
  type EnvironmentDefinition,
  EnvironmentError,
  type ToolSession,
} from '../protocol/definition.ts';
import type { JsonSchema } from '../protocol/messages.ts';
import { isJsonObject } from '../protocol/read-json.ts';
import { resetOptionsReader, resetOptionsSchema } from '../protocol/reset-options.ts';
import { actionReader, toJsonSchema } from '../protocol/schemas.ts';
import { gradeRecord } from '../sessions/episode.ts';
import type { Session } from '../sessions/session.ts';
import TEXTS from './generated-tools.json' with { type: 'json' };

/** The tools of an environment by their names. */
export type EnvironmentTools = ReadonlyMap<string, EnvironmentTool>;

/** A tool through which an agent plays a session. */
export interface EnvironmentTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  /** True for a tool that changes nothing. */
  readonly readOnly?: boolean;
  readonly startsEpisode?: boolean;
  /** True for a tool that is called without a session. */
  readonly sessionless?: boolean;
  /** @throws EnvironmentError `VALIDATION_ERROR`, or whatever the environment throws. */
  call(session: Session, args: unknown, caller?: Caller): unknown;
}

type ToolDefinition = NonNullable<EnvironmentDefinition['tools']>[number];

const NO_ARGUMENTS: JsonSchema = { type: 'object', properties: {}, additionalProperties: false };
/** Names that no tool may have: in OpenEnv they are the messages of a session. */
const RESERVED_TOOLS = ['reset', 'step', 'state', 'close'];
const GENERATED_TOOLS = Object.keys(TEXTS);
/** Names that language models' tool calls accept. */
const TOOL_NAME = /^[\w-]{1,64}$/;

/**
 * The tools of an environment: those made from the schemas that it has anyway, and its own. In production the episode is
 * started for the agent, not by it.
 * @throws EnvironmentError `TOOL_NAME` for a tool whose name is taken, reserved or malformed
 */
export function environmentTools(
  definition: EnvironmentDefinition,
  mode: 'simulation' | 'production',
): EnvironmentTools {
  const readOptions = resetOptionsReader(definition);
  const readAction = actionReader(definition.action);
  const startInProduction = async (session: Session) => {
    if (mode === 'production' && session.record === null) await session.reset(readOptions({}));
  };
  const generated = (
    name: keyof typeof TEXTS,
    call: EnvironmentTool['call'],
    more: Partial<EnvironmentTool> = { readOnly: true },
  ): EnvironmentTool => {
    const { title, description } = TEXTS[name];
    const ofThis = description.replace('{name}', () => definition.name);
    return { name, title, description: ofThis, inputSchema: NO_ARGUMENTS, ...more, call };
  };
  const startEpisode = generated('start_episode', (session, args) => session.reset(readOptions(args)), {
    inputSchema: toJsonSchema(resetOptionsSchema(definition), 'input'),
    startsEpisode: true,
  });
  const takeAction = generated(
    'take_action',
    async (session, args) => {
      const action = readAction(args);
      await startInProduction(session);
      return session.step(action);
    },
    { inputSchema: { ...toJsonSchema(definition.action, 'input'), type: 'object' } },
  );
  const { tasks } = definition;
  const listTasks = generated('list_tasks', () => ({ tasks }), { readOnly: true, sessionless: true });
  const gradeEpisode = generated('grade_episode', (session, _args, caller) => {
    if (session.record !== null) return gradeRecord(definition, session.record, caller);
    throw new EnvironmentError('NOT_RESET', 'There is no episode to grade yet. Start one first.');
  });
  const tools = [
    ...(mode === 'simulation' ? [startEpisode] : []),
    takeAction,
    generated('get_state', (session) => session.state()),
    ...(tasks ? [listTasks] : []),
    ...(definition.grade ? [gradeEpisode] : []),
    ...checked(definition.tools ?? []).map(ownTool),
  ];
  return new Map(tools.map((tool) => [tool.name, tool]));

  function ownTool(tool: ToolDefinition): EnvironmentTool {
    const { name, title = name, description, input, readOnly } = tool;
    const readArguments = actionReader(input);
    return {
      ...{ name, title, description, readOnly },
      inputSchema: toJsonSchema(input, 'input'),
      async call(session, args) {
        const read = readArguments(args);
        await startInProduction(session);
        const seen: ToolSession = {
          id: session.id,
          environment: session.environment,
          get record() {
            return session.record;
          },
          get lastResult() {
            return session.lastResult;
          },
          step: async (action) => session.step(readAction(action)),
        };
        return tool.call(read, seen);
      },
    };
  }
}

function checked(tools: readonly ToolDefinition[]): readonly ToolDefinition[] {
  const taken = new Set([...RESERVED_TOOLS, ...GENERATED_TOOLS]);
  for (const { name, input } of tools) {
    const require = (isMet: boolean, expected: string) => {
      if (!isMet) throw new EnvironmentError('TOOL_NAME', `Expected ${expected}`);
    };
    const form = `1 to 64 letters, digits, \`_\` or \`-\`, got ${JSON.stringify(name)}.`;
    require(TOOL_NAME.test(name), `the name of a tool to be ${form}`);
    const free = `neither reserved nor taken (${[...taken].join(', ')}). Choose another.`;
    require(!taken.has(name), `the tool \`${name}\` to have a name that is ${free}`);
    const other = 'no argument `session_id`, which the server reads. Name it otherwise.';
    require(!('session_id' in input.shape), `the tool \`${name}\` to have ${other}`);
    taken.add(name);
  }
  return tools;
}

/** A tool as `tools/list` shows it. */
export type ToolListing = ReturnType<typeof listingsOf>[number];

/** The schema is there twice: clients differ in the spelling that they read. */
export function listingsOf(tools: EnvironmentTools) {
  return [...tools.values()].map(({ name, title, description, inputSchema }) => {
    return { name, title, description, input_schema: inputSchema, inputSchema };
  });
}

/** The value of a tool in every spelling that OpenEnv clients read. */
export function toolCallResult(value: unknown) {
  const { text, structured } = toolContent(value);
  return {
    content: [{ type: 'text', text }],
    structured_content: structured,
    structuredContent: structured,
    /** The plain value; the Python client returns this. */
    data: value ?? null,
    is_error: false,
    isError: false,
  };
}

/** The value of a tool as text and as an object: another value becomes the field `result`, as in OpenEnv's own server. */
export function toolContent(value: unknown): { text: string; structured: Record<string, unknown> } {
  return {
    text: typeof value === 'string' ? value : JSON.stringify(value ?? null),
    structured: isJsonObject(value) ? value : { result: value ?? null },
  };
}
