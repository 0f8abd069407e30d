import type { z } from 'zod';
import { toJsonSchema } from '../input/json-schemas.ts';
import { errorBody, type JsonSchema, validationIssue } from '../protocol/http-body.ts';
import type { RouteDescription } from './route-table.ts';

/** The version of OpenEnv's HTTP API that this server speaks; `openenv validate` reads it. */
const API_VERSION = '1.0.0';

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
    components: {
      schemas: {
        Error: toJsonSchema(errorBody, 'answer'),
        ValidationError: toJsonSchema(validationIssue, 'answer'),
      },
    },
  };
}

function operation(route: RouteDescription): object {
  const path = propertiesOf(route.parameters);
  const parameters = [
    ...[...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) =>
      parameter('path', name!, true, path[name!] ?? { type: 'string' }),
    ),
    ...Object.entries(propertiesOf(route.query)).map(([name, schema]) =>
      parameter('query', name, false, schema),
    ),
    ...Object.entries(route.headers ?? {}).map(([name, description]) =>
      parameter('header', name, true, { type: 'string', description }),
    ),
  ];
  const errors = Object.entries(route.errors ?? {}).map(([status, error]) => {
    const isText = typeof error === 'string';
    const schema = isText ? { $ref: '#/components/schemas/Error' } : toJsonSchema(error.body, 'answer');
    const description = isText ? error : error.meaning;
    return [status, { description, content: { 'application/json': { schema } } }];
  });
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description && { description: route.description }),
    ...(parameters.length > 0 && { parameters }),
    ...(route.body && { requestBody: requestBody(route.body) }),
    responses: {
      ...(route.answer
        ? { 200: { description: 'OK', content: contentOf(route.answer) } }
        : { 204: { description: 'Done' } }),
      ...Object.fromEntries(errors),
    },
  };
}

function propertiesOf(schema: z.ZodType | undefined): Readonly<Record<string, JsonSchema>> {
  return (schema && toJsonSchema(schema, 'input').properties) ?? {};
}

function parameter(place: string, name: string, required: boolean, { description, ...schema }: JsonSchema) {
  return { name, in: place, required, ...(description !== undefined && { description }), schema };
}

/** A body that may be left out may also be null. */
function requestBody(body: z.ZodType): object {
  const schema = toJsonSchema(body, 'input');
  const isOptional = body.safeParse({}).success;
  return {
    required: !isOptional,
    content: { 'application/json': { schema: isOptional ? { anyOf: [schema, { type: 'null' }] } : schema } },
  };
}

function contentOf(answer: NonNullable<RouteDescription['answer']>): object {
  return 'mediaType' in answer
    ? { [answer.mediaType]: {} }
    : { 'application/json': { schema: toJsonSchema(answer, 'answer') } };
}
