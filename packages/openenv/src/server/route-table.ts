import type { Context, Hono } from 'hono';
import { z } from 'zod';
import { InvalidInputError, readInput } from '../input/validation-issues.ts';
import type { JsonSchema, ReadonlyDeep } from '../protocol/http-body.ts';
import { readClientJson } from '../sessions/turns.ts';
import { type OpenApiDocument, openApiDocument } from './openapi-document.ts';

type Schema = z.ZodType;

/** A route. Its schemas check requests, type the handler, and stand in the OpenAPI document. */
export interface RouteDescription<
  Parameters extends Schema = Schema,
  Query extends z.ZodObject = z.ZodObject,
  Body extends Schema = Schema,
  Answer extends Schema = Schema,
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
  /** The body is only described; the handler reads it. */
  readonly rawBody?: boolean;
  /** The JSON of the answer, or its media type when it is not JSON. A route without one answers 204. */
  readonly answer?: Answer | { readonly mediaType: string };
  /** Meaning of each error status, and the error's JSON where it is not `{ detail, code }`. */
  readonly errors?: Readonly<Record<number, string | { readonly meaning: string; readonly body: Schema }>>;
}

/** The parts of a request that its route has checked. */
export interface RouteInput<Parameters extends Schema, Query extends Schema, Body extends Schema> {
  readonly parameters: z.output<Parameters>;
  readonly query: z.output<Query>;
  readonly body: z.output<Body>;
}

/** Answers a request with JSON, or with a response of its own. Errors are thrown. */
export type RouteHandler<
  Parameters extends Schema,
  Query extends Schema,
  Body extends Schema,
  Answer extends Schema,
> = (
  context: Context,
  input: RouteInput<Parameters, Query, Body>,
) => ReadonlyDeep<z.output<Answer>> | Response | Promise<ReadonlyDeep<z.output<Answer>> | Response>;

/** Adds a route to an application and to the description of its API. */
export type AddRoute = <
  Parameters extends Schema = z.ZodRecord<z.ZodString, z.ZodString>,
  Query extends z.ZodObject = z.ZodObject,
  Body extends Schema = z.ZodUndefined,
  Answer extends Schema = z.ZodNever,
>(
  description: RouteDescription<Parameters, Query, Body, Answer>,
  handler: RouteHandler<Parameters, Query, Body, Answer>,
) => void;

/** The routes of an application. */
export class RouteTable {
  readonly #app: Hono;
  readonly #environment: { readonly name: string; readonly description: string };
  readonly #routes: RouteDescription[] = [];
  #document: OpenApiDocument | undefined;

  constructor(app: Hono, environment: { readonly name: string; readonly description: string }) {
    this.#app = app;
    this.#environment = environment;
  }

  readonly add: AddRoute = (description, handler) => {
    this.#routes.push(description as RouteDescription);
    this.#document = undefined;
    const { method, path, parameters, query, body, rawBody } = description;
    const readsBody = body !== undefined && !rawBody;
    this.#app.on(method.toUpperCase(), path.replaceAll(/\{(\w+)\}/g, ':$1'), async (context) => {
      const sentParameters = context.req.param();
      const reading = parameters?.safeParse(sentParameters);
      if (reading?.success === false) return context.notFound();
      const answer = await handler(context, {
        parameters: (reading?.data ?? sentParameters) as never,
        query: query && readInput(query, context.req.query(), 'query'),
        body: readsBody ? readBody(await requestJson(context), body) : undefined,
      } as never);
      return answer instanceof Response ? answer : context.json(answer as never);
    });
  };

  /** Methods that a path takes, in capitals. */
  methodsOf(path: string): string[] {
    return this.#routes.filter((route) => route.path === path).map(({ method }) => method.toUpperCase());
  }

  get document(): OpenApiDocument {
    this.#document ??= openApiDocument(this.#environment, this.#routes);
    return this.#document;
  }
}

/** A value of the API whose JSON Schema is known, but no zod schema. Anything is taken. */
export function jsonValue<T>(schema: JsonSchema): z.ZodType<T> {
  return z.custom<T>().meta(schema as z.GlobalMeta);
}

/** @throws InvalidInputError naming the fields */
function readBody<Body>(json: unknown, schema: z.ZodType<Body>): Body {
  if (json !== null) return readInput(schema, json, 'body');
  const empty = schema.safeParse({});
  if (empty.success) return empty.data;
  throw InvalidInputError.of('missing', ['body'], 'Field required');
}

/**
 * The JSON of a request's body; an empty body reads as `null`.
 * @throws InvalidInputError for text that is not JSON, does not say that it is, or exceeds the limits of `readClientJson`.
 */
async function requestJson(context: Context): Promise<unknown> {
  const text = await context.req.text();
  if (text === '') return null;
  const contentType = context.req.header('content-type') ?? '';
  if (!/^application\/([\w.+-]+\+)?json\b/i.test(contentType)) {
    const expected = `Input should be JSON with the header content-type: application/json, not '${contentType.slice(0, 100)}'`;
    throw InvalidInputError.of('model_attributes_type', ['body'], expected, text.slice(0, 200));
  }
  const reading = await readClientJson(text, context.get('client'));
  if (reading.ok) return reading.value;
  const { position, message, isOverLimit } = reading;
  const [type, problem] = isOverLimit
    ? ['json_over_limit', 'JSON over a limit']
    : ['json_invalid', 'JSON decode error'];
  throw InvalidInputError.of(type, ['body', position], problem, {}, { error: message });
}
