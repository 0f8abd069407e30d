import type { Context } from 'hono';
import type { z } from 'zod';
import { ApiError } from './api-error.ts';

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
