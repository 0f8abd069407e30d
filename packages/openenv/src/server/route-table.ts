import type { Context, Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { routePath } from 'hono/route';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { z } from 'zod';
import { errorAnswer } from '../protocol/errors.ts';
import {
  type ErrorBody,
  errorBody,
  type JsonSchema,
  type ReadonlyDeep,
  validationIssue,
} from '../protocol/messages.ts';
import { invalidInput, readInput, toJsonSchema } from '../protocol/schemas.ts';
import { readClientJson } from '../sessions/off-loop.ts';
import { WATCHED } from '../sessions/session.ts';
import type { Logger } from '../sessions/session-store.ts';
import ROUTES from './routes.json' with { type: 'json' };

/** An error of a route with a status of its own, to be thrown. Its body has the code where there is one. */
export function httpProblem(status: ContentfulStatusCode, detail: string, code?: string): HTTPException {
  return new HTTPException(status, { message: detail, cause: { code } });
}

/** Turns whatever a route threw into the JSON body that OpenEnv clients expect. */
export function answerError(error: Error, context: Context, logger: Logger): Response {
  const problem = (status: ContentfulStatusCode, body: ErrorBody) => context.json(body, status);
  if (error instanceof HTTPException) {
    const { code } = (error.cause ?? {}) as ErrorBody;
    return problem(error.status, { detail: error.message, code });
  }
  const { code, status, retryAfter, message, issues } = errorAnswer(error);
  if (code === 'VALIDATION_ERROR') return problem(status, { detail: issues });
  if (retryAfter !== undefined) context.header('retry-after', String(retryAfter));
  if (code !== 'EXECUTION_ERROR') return problem(status, { detail: message, code });
  if (context.req.raw.signal.aborted) return problem(503, { detail: 'The client has left.' });
  if (!WATCHED.has(error))
    logger.error({ err: error, method: context.req.method, path: loggedPath(context) }, 'request failed');
  return problem(status, { detail: `Internal Server Error: ${message}`, code });
}

/** The path of a request, as its route has it: the id of a session in it is the key to the session. */
export function loggedPath(context: Context): string {
  const route = routePath(context, -1);
  return route.includes(':') ? route : context.req.path;
}

/** The version of OpenEnv's HTTP API that this server speaks; `openenv validate` reads it. */
const API_VERSION = '1.0.0';

export type OpenApiDocument = ReturnType<typeof openApiDocument>;

function openApiDocument(
  environment: { readonly name: string; readonly description: string },
  routes: readonly RouteDescription[],
) {
  const paths: Record<string, Readonly<Record<string, ReturnType<typeof operation>>>> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method]: operation(route) };
  }
  return {
    openapi: '3.1.0' as const,
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

function operation(route: RouteDescription) {
  const { operationId, tag, summary, description, body, answer } = route;
  const path = propertiesOf(route.parameters);
  const parameters = [
    ...[...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) =>
      parameter('path', name, true, path[name] ?? { type: 'string' }),
    ),
    ...Object.entries(propertiesOf(route.query)).map(([name, schema]) =>
      parameter('query', name, false, schema),
    ),
    ...Object.entries(route.headers ?? {}).map(([name, description]) =>
      parameter('header', name, true, { type: 'string', description }),
    ),
  ];
  const responses: Record<string, { readonly description: string; readonly content?: Content }> = answer
    ? { 200: { description: 'OK', content: contentOf(answer) } }
    : { 204: { description: 'Done' } };
  const error = route.errorBody
    ? toJsonSchema(route.errorBody, 'answer')
    : { $ref: '#/components/schemas/Error' };
  for (const [status, meaning] of Object.entries(route.errors ?? {})) {
    responses[status] = { description: meaning, content: { 'application/json': { schema: error } } };
  }
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    parameters: parameters.length > 0 ? parameters : undefined,
    requestBody: body && bodyOf(body),
    responses,
  };
}

/** Schemas of a body by media type. */
type Content = Readonly<Record<string, { readonly schema?: JsonSchema }>>;

function propertiesOf(schema: z.ZodType | undefined): Readonly<Record<string, JsonSchema>> {
  return (schema && toJsonSchema(schema, 'input').properties) ?? {};
}

function parameter(place: string, name: string, required: boolean, { description, ...schema }: JsonSchema) {
  return { name, in: place, required, ...(description !== undefined && { description }), schema };
}

/** A body that may be left out may also be null. */
function bodyOf(body: z.ZodType) {
  const schema = toJsonSchema(body, 'input');
  const isOptional = body.safeParse({}).success;
  return {
    required: !isOptional,
    content: { 'application/json': { schema: isOptional ? { anyOf: [schema, { type: 'null' }] } : schema } },
  };
}

function contentOf(answer: NonNullable<RouteDescription['answer']>): Content {
  return 'mediaType' in answer
    ? { [answer.mediaType]: {} }
    : { 'application/json': { schema: toJsonSchema(answer, 'answer') } };
}

/** A route. Its schemas check requests, type the handler, and stand in the OpenAPI document. */
interface RouteDescription<
  Parameters extends z.ZodType = z.ZodType,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
> {
  readonly method: 'get' | 'post' | 'delete';
  /** With parameters in braces, for instance `/{env_name}/splits`. */
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** Parameters of the path, any text by default. A path with others is not found. */
  readonly parameters?: Parameters;
  readonly query?: Query;
  /** Headers that the handler requires. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The JSON of the request. It may be left out, or null, where the schema takes `{}`. */
  readonly body?: Body;
  /** Called before the body is read. @throws what refuses the request */
  readonly admit?: () => void;
  /** The body is only described; the handler reads it. */
  readonly rawBody?: boolean;
  /** The JSON of the answer, or its media type when it is not JSON. A route without one answers 204. */
  readonly answer?: Answer | { readonly mediaType: string };
  /** Meaning of each error status. */
  readonly errors?: Readonly<Record<number, string>>;
  /** The JSON of errors. Default: `{ detail, code }`. */
  readonly errorBody?: z.ZodType;
}

/** Looks up by its operation what `/openapi.json` says about a route. */
export function describedBy<Operation extends string>(texts: Readonly<Record<Operation, unknown>>) {
  type Texts = Pick<RouteDescription, 'method' | 'path' | 'tag' | 'summary' | 'description' | 'errors'>;
  return (operationId: Operation) => ({ operationId, ...(texts[operationId] as Texts) });
}

/** The same for the routes of this package. */
export const described = describedBy(ROUTES);

/**
 * Adds a route to an application and to the description of its API. The handler gets the parts of the request that the
 * schemas have checked, and answers with JSON, or with a response of its own. Errors are thrown.
 */
export type AddRoute = <
  Parameters extends z.ZodType = z.ZodRecord<z.ZodString, z.ZodString>,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodUndefined,
  Answer extends z.ZodType = z.ZodNever,
>(
  description: RouteDescription<Parameters, Query, Body, Answer>,
  handler: (
    context: Context,
    input: {
      readonly parameters: z.output<Parameters>;
      readonly query: z.output<Query>;
      readonly body: z.output<Body>;
    },
  ) => ReadonlyDeep<z.output<Answer>> | Response | Promise<ReadonlyDeep<z.output<Answer>> | Response>,
) => void;

/** The routes of an application. */
export function routeTable(app: Hono, environment: { readonly name: string; readonly description: string }) {
  const routes: RouteDescription[] = [];
  let document: OpenApiDocument | undefined;
  const add: AddRoute = (description, handler) => {
    routes.push(description as RouteDescription);
    document = undefined;
    const { method, path, parameters, query, body, rawBody, admit } = description;
    const readsBody = body !== undefined && !rawBody;
    app.on(method.toUpperCase(), path.replaceAll(/\{(\w+)\}/g, ':$1'), async (context) => {
      const sentParameters = context.req.param();
      const reading = parameters?.safeParse(sentParameters);
      if (reading?.success === false) return context.notFound();
      const answer = await handler(context, {
        parameters: (reading?.data ?? sentParameters) as never,
        query: query && readInput(query, context.req.query(), 'query'),
        body: readsBody ? readBody(await requestJson(context, admit), body) : undefined,
      } as never);
      return answer instanceof Response ? answer : context.json(answer as never);
    });
  };
  return {
    add,
    /** Methods that a path takes, in capitals. */
    methodsOf: (path: string) =>
      routes.filter((route) => route.path === path).map(({ method }) => method.toUpperCase()),
    document() {
      document ??= openApiDocument(environment, routes);
      return document;
    },
  };
}

/** A value of the API whose JSON Schema is known, but no zod schema. Anything is taken. */
export function jsonValue<T>(schema: JsonSchema): z.ZodType<T> {
  return z.custom<T>().meta(schema as z.GlobalMeta);
}

export function sessionIdSchema(description: string) {
  return z.string().max(255).nullish().meta({ description });
}

function readBody<Body>(json: unknown, schema: z.ZodType<Body>): Body {
  if (json !== null) return readInput(schema, json, 'body');
  const empty = schema.safeParse({});
  if (empty.success) return empty.data;
  throw invalidInput('missing', ['body'], 'Field required');
}

export async function bodyBytes({ req }: Context): Promise<Uint8Array> {
  return new Uint8Array(await req.arrayBuffer());
}

/**
 * The JSON of a request's body; an empty body reads as `null`.
 * @throws EnvironmentError `VALIDATION_ERROR` for text that is not JSON, does not say that it is, or exceeds the limits of `readClientJson`.
 */
async function requestJson(context: Context, admit?: () => void): Promise<unknown> {
  admit?.();
  const bytes = await bodyBytes(context);
  if (bytes.length === 0) return null;
  const contentType = context.req.header('content-type') ?? '';
  if (!/^application\/([\w.+-]+\+)?json\b/i.test(contentType)) {
    const expected = `Input should be JSON with the header content-type: application/json, not '${contentType.slice(0, 100)}'`;
    const input = new TextDecoder().decode(bytes.subarray(0, 200));
    throw invalidInput('model_attributes_type', ['body'], expected, input);
  }
  const reading = await readClientJson(bytes, context.get('client'));
  if (reading.ok) return reading.value;
  const { position, message, isOverLimit } = reading;
  const [type, problem] = isOverLimit
    ? ['json_over_limit', 'JSON over a limit']
    : ['json_invalid', 'JSON decode error'];
  throw invalidInput(type, ['body', position], problem, {}, { error: message });
}
