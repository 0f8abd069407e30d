import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { z } from 'zod';

/** An answer to a request that cannot be served, in the shape of the OpenAI API. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: ContentfulStatusCode;
  /** Stable. */
  readonly code: string;
  /** The field at fault. */
  readonly param: string | null;

  constructor(status: ContentfulStatusCode, code: string, message: string, param: string | null = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.param = param;
  }

  get body() {
    const { message, param, code } = this;
    return { error: { message, type: typeOf(this.status), param, code } };
  }
}

function typeOf(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 404) return 'not_found_error';
  return status < 500 ? 'invalid_request_error' : 'server_error';
}

/** The JSON body of a request, checked. @throws ApiError naming the first field that is wrong */
export async function readBody<Schema extends z.ZodType>(
  context: Pick<Context, 'req'>,
  schema: Schema,
): Promise<z.infer<Schema>> {
  let body: unknown;
  try {
    body = await context.req.json();
  } catch {
    throw new ApiError(400, 'invalid_json', 'Expected the body to be JSON.');
  }
  const read = schema.safeParse(body);
  if (read.success) return read.data;
  const issue = read.error.issues[0];
  const field = issue.path.join('.');
  throw new ApiError(
    400,
    'invalid_value',
    `${field === '' ? 'The body' : `\`${field}\``}: ${issue.message}`,
    field === '' ? null : field,
  );
}
