import type { AnswerFields, EnvironmentDefinition } from '../definition.ts';
import { toJsonSchema } from '../input/json-schemas.ts';
import { resetOptionsSchema } from '../input/reset-options-reader.ts';
import type { SchemaBody } from '../protocol/http-body.ts';
import type { JsonSchema } from '../protocol/json-schema.ts';
import { LOG_LISTS } from './episode-log.ts';
import { graderRequest, resetRequest, stepRequest } from './request-schemas.ts';
import type { RouteDescription } from './route-table.ts';
import { describeTaskRoutes } from './task-routes.ts';

const SESSION_QUERY = [
  { name: 'session_id', description: "The session; without one, the caller's latest" },
] as const;

const JSON_RPC_ERROR: JsonSchema = {
  type: 'object',
  properties: {
    jsonrpc: { const: '2.0' },
    error: {
      type: 'object',
      properties: { code: { type: 'integer' }, message: { type: 'string' } },
      required: ['code', 'message'],
    },
  },
  required: ['jsonrpc', 'error'],
};

const NULLABLE_STRING: JsonSchema = { anyOf: [{ type: 'string' }, { type: 'null' }] };

export const METRICS_ROUTE: RouteDescription = {
  method: 'get',
  path: '/metrics',
  operationId: 'metrics_get',
  tag: 'Health',
  summary: 'Numbers for Prometheus',
  response: { mediaType: 'text/plain' },
};

/** Describes the server's own routes, in the order in which the documentation lists them. */
export function describeRoutes(
  definition: EnvironmentDefinition<unknown, object, object>,
  mode: 'simulation' | 'production',
  schemas: SchemaBody,
): RouteDescription[] {
  const simulation: RouteDescription[] = [
    {
      method: 'post',
      path: '/reset',
      operationId: 'reset_reset_post',
      tag: 'Environment Control',
      summary: 'Reset the environment',
      description:
        'Opens a session, or starts the named one again, and returns the first observation. The answer carries the `session_id`.',
      request: resetRequestSchema(definition),
      requestRequired: false,
      response: observationBody(schemas.reset_observation, definition.httpFields?.reset),
      errors: {
        400: 'Options that contradict each other',
        404: 'Unknown session',
        422: 'Invalid options',
        503: 'No session is free',
      },
    },
    {
      method: 'post',
      path: '/step',
      operationId: 'step_step_post',
      tag: 'Environment Control',
      summary: 'Execute an action in the environment',
      request: withAction(toJsonSchema(stepRequest, 'input'), schemas.action),
      response: observationBody(schemas.observation, definition.httpFields?.step),
      errors: {
        404: 'Unknown session',
        409: 'No episode was started (`NOT_RESET`), or it is over (`EPISODE_OVER`)',
        422: 'Invalid action',
      },
    },
    {
      method: 'get',
      path: '/state',
      operationId: 'endpoint_state_get',
      tag: 'State Management',
      summary: 'Get current environment state',
      query: SESSION_QUERY,
      response: schemas.state,
      errors: { 404: 'Unknown session' },
    },
  ];
  return [
    ...(mode === 'simulation' ? simulation : []),
    {
      method: 'get',
      path: '/tasks',
      operationId: 'list_tasks_get',
      tag: 'Environment Info',
      summary: 'List the tasks and the schema of the action',
      response: object({
        tasks: { type: 'array', items: { type: 'object' } },
        action_schema: { type: 'object' },
      }),
    },
    ...(definition.grade ? [graderRoute(definition, schemas)] : []),
    {
      method: 'get',
      path: '/metadata',
      operationId: 'endpoint_metadata_get',
      tag: 'Environment Info',
      summary: 'Get environment metadata',
      response: object({
        name: { type: 'string' },
        description: { type: 'string' },
        readme_content: NULLABLE_STRING,
        version: NULLABLE_STRING,
        author: NULLABLE_STRING,
        documentation_url: NULLABLE_STRING,
      }),
    },
    {
      method: 'get',
      path: '/environments',
      operationId: 'list_environments_get',
      tag: 'Environment Info',
      summary: 'List the environments of this port',
      description: 'Each has a server of its own; `path` is its root, relative to the root of this one.',
      response: object({
        environments: {
          type: 'array',
          items: object({
            id: { type: 'string' },
            version: { type: 'string' },
            name: { type: 'string' },
            description: { type: 'string' },
            path: { type: 'string' },
          }),
        },
      }),
    },
    {
      method: 'get',
      path: '/schema',
      operationId: 'get_schemas_schema_get',
      tag: 'Schema',
      summary: 'Get all JSON schemas',
      response: object({
        action: { type: 'object' },
        observation: { type: 'object' },
        reset_observation: { type: 'object' },
        state: { type: 'object' },
      }),
    },
    {
      method: 'get',
      path: '/health',
      operationId: 'endpoint_health_get',
      tag: 'Health',
      summary: 'Health check',
      response: object(
        {
          status: { type: 'string', enum: ['healthy', 'unhealthy', 'degraded'] },
          active_sessions: { type: 'integer', minimum: 0 },
          uptime_seconds: { type: 'number', minimum: 0 },
        },
        {
          reason: {
            type: 'string',
            description: 'Why the server is degraded: sessions are not being written',
          },
        },
      ),
      errors: { 503: 'The server is shutting down' },
    },
    {
      method: 'post',
      path: '/mcp',
      operationId: 'mcp_endpoint_mcp_post',
      tag: 'MCP',
      summary: 'Call tools over JSON-RPC',
      description:
        "OpenEnv's `tools/list`, `tools/call`, `openenv/session/create` and `openenv/session/close`; for clients that accept `text/event-stream`, the Model Context Protocol over Streamable HTTP.",
      request: {},
      requestRequired: false,
      response: { type: 'object' },
      errors: { 404: 'The `mcp-session-id` is unknown', 503: 'No session is free' },
      errorBody: JSON_RPC_ERROR,
    },
    {
      method: 'delete',
      path: '/mcp',
      operationId: 'mcp_endpoint_mcp_delete',
      tag: 'MCP',
      summary: 'End the MCP session',
      headers: [{ name: 'mcp-session-id', description: 'The session to end' }],
      response: { mediaType: 'application/json' },
      errors: { 400: 'There is no `mcp-session-id`', 404: 'The `mcp-session-id` is unknown' },
      errorBody: JSON_RPC_ERROR,
    },
    ...describeTaskRoutes(definition),
  ];
}

function object(
  required: Readonly<Record<string, JsonSchema>>,
  optional: Readonly<Record<string, JsonSchema>> = {},
): JsonSchema {
  return { type: 'object', properties: { ...required, ...optional }, required: Object.keys(required) };
}

function resetRequestSchema(definition: EnvironmentDefinition<unknown, object, object>): JsonSchema {
  const schema = toJsonSchema(resetRequest, 'input');
  return { ...schema, properties: { ...optionProperties(definition), ...schema.properties } };
}

function graderRoute(
  definition: EnvironmentDefinition<unknown, object, object>,
  schemas: SchemaBody,
): RouteDescription {
  return {
    method: 'post',
    path: '/grader',
    operationId: 'grade_post',
    tag: 'Grading',
    summary: 'Grade an episode',
    description:
      "Grades the session's own episode, or replays the actions of an `episode_log`. Options of the reset stand beside the log; those that do not are as in the session (the named one, or the caller's latest) where its task is the same. The score is strictly inside (0, 1); `replayed` names task and seed.",
    request: graderRequestSchema(definition, schemas.action),
    requestRequired: false,
    response: object({
      score: { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
      breakdown: { type: 'object' },
      feedback: { type: 'string' },
      replayed: { type: 'object', description: 'Options of the reset that was replayed' },
    }),
    errors: {
      400: 'The episode cannot be replayed, or nothing tells its seed (`SEED_REQUIRED`)',
      404: 'Unknown session',
      409: 'There is no episode to grade (`NOT_RESET`)',
      422: 'Invalid log',
    },
  };
}

/** The options of a reset. One that is null counts as absent. */
function optionProperties(definition: EnvironmentDefinition<unknown, object, object>) {
  const { properties = {} } = toJsonSchema(resetOptionsSchema(definition), 'input');
  return Object.fromEntries(
    Object.entries(properties).map(([name, option]) => [name, { anyOf: [option, { type: 'null' }] }]),
  );
}

/** The body of a grading: the reset's options may stand beside the log. */
function graderRequestSchema(
  definition: EnvironmentDefinition<unknown, object, object>,
  action: JsonSchema,
): JsonSchema {
  const schema = toJsonSchema(graderRequest, 'input');
  const step: JsonSchema = {
    anyOf: [
      {
        type: 'object',
        properties: { action: { anyOf: [action, { type: 'null' }] } },
        required: ['action'],
      },
      { ...action, not: { required: ['action'] } },
    ],
  };
  const list: JsonSchema = { type: 'array', items: step };
  const options = optionProperties(definition);
  const log: JsonSchema = {
    description:
      'Steps, each an action or an object with an `action`. The actions are replayed; claimed observations are ignored',
    anyOf: [
      list,
      ...LOG_LISTS.map((name) => ({
        type: 'object',
        properties: { reset: { type: 'object', description: 'Options of the reset' }, [name]: list },
        required: [name],
        not: { anyOf: LOG_LISTS.filter((other) => other !== name).map((other) => ({ required: [other] })) },
      })),
      { type: 'null' },
    ],
  };
  return { ...schema, properties: { ...options, ...schema.properties, episode_log: log } };
}

function withAction(schema: JsonSchema, action: JsonSchema): JsonSchema {
  return { ...schema, properties: { ...schema.properties, action } };
}

/** The wire has `reward`, `done` and `metadata` beside the observation, where the schema has them inside. */
function observationBody(schema: JsonSchema, fields?: AnswerFields<object>): JsonSchema {
  const { reward, done, metadata, ...own } = schema.properties ?? {};
  const observation = schema.properties ? { ...schema, properties: own } : schema;
  const further = fields ? toJsonSchema(fields.schema, 'output') : {};
  return {
    type: 'object',
    properties: {
      ...further.properties,
      observation,
      reward: reward ?? { type: 'number' },
      done: done ?? { type: 'boolean' },
      session_id: { type: 'string' },
      metadata: { anyOf: [metadata ?? { type: 'object' }, { type: 'null' }] },
    },
    required: [...(further.required ?? []), 'observation', 'reward', 'done', 'session_id', 'metadata'],
  };
}
