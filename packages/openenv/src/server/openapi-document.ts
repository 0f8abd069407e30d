import { z } from 'zod';
import { toJsonSchema } from '../input/json-schemas.ts';
import type { JsonSchema } from '../protocol/json-schema.ts';
import type { RouteDescription } from './route-table.ts';

/** The version of OpenEnv's HTTP API that this server speaks; `openenv validate` reads it. */
const API_VERSION = '1.0.0';

const ERROR_SCHEMA: JsonSchema = {
  title: 'Error',
  type: 'object',
  properties: {
    detail: {
      anyOf: [{ type: 'string' }, { type: 'array', items: { $ref: '#/components/schemas/ValidationError' } }],
    },
    code: { type: 'string', description: 'Stable code, where the text has one' },
  },
  required: ['detail'],
};

const VALIDATION_ERROR_SCHEMA: JsonSchema = {
  title: 'ValidationError',
  type: 'object',
  properties: {
    type: { type: 'string' },
    loc: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'integer' }] } },
    msg: { type: 'string' },
    input: {},
    ctx: { type: 'object' },
  },
  required: ['type', 'loc', 'msg'],
};

export interface OpenApiDocument {
  readonly openapi: '3.1.0';
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
}

/** Describes the routes of a server in OpenAPI 3.1. */
export function openApiDocument(
  environment: { readonly name: string; readonly description: string },
  routes: readonly RouteDescription[],
): OpenApiDocument {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    paths[route.path] ??= {};
    paths[route.path][route.method] = operation(route);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: `${environment.name} over OpenEnv`,
      version: API_VERSION,
      description: `${environment.description}\n\nSessions also run over the WebSocket \`/ws\`, and MCP over \`/mcp\`.`,
    },
    paths,
    components: { schemas: { Error: ERROR_SCHEMA, ValidationError: VALIDATION_ERROR_SCHEMA } },
  };
}

function operation(route: RouteDescription): object {
  const parameters = [
    ...[...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
      name,
      in: 'path',
      required: true,
      schema: route.parameters?.[name!] ?? { type: 'string' },
    })),
    ...(route.query ?? []).map(({ name, description }) => ({
      name,
      in: 'query',
      required: false,
      description,
      schema: { type: 'string' },
    })),
    ...(route.headers ?? []).map(({ name, description }) => ({
      name,
      in: 'header',
      required: true,
      description,
      schema: { type: 'string' },
    })),
  ];
  const errors = Object.entries(route.errors ?? {}).map(([status, description]) => [
    status,
    {
      description,
      content: { 'application/json': { schema: route.errorBody ?? { $ref: '#/components/schemas/Error' } } },
    },
  ]);
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description && { description: route.description }),
    ...(parameters.length > 0 && { parameters }),
    ...(route.request && {
      requestBody: {
        required: route.requestRequired ?? true,
        content: { 'application/json': { schema: requestSchema(route) } },
      },
    }),
    responses: {
      200: { description: 'OK', content: contentOf(route.response) },
      ...Object.fromEntries(errors),
    },
  };
}

function contentOf(response: RouteDescription['response']): object {
  return 'mediaType' in response
    ? { [String(response.mediaType)]: {} }
    : { 'application/json': { schema: response } };
}

/** A body that may be left out may also be null. */
function requestSchema({ request, requestRequired = true }: RouteDescription): JsonSchema {
  const schema = request instanceof z.ZodType ? toJsonSchema(request, 'input') : (request ?? {});
  return requestRequired ? schema : { anyOf: [schema, { type: 'null' }] };
}
