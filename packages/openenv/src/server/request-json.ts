import type { Context } from 'hono';
import { InvalidInputError } from '../input/invalid-input-error.ts';
import { readClientJson } from '../json/read-client-json.ts';

/**
 * The JSON of a request's body; an empty body reads as `null`.
 * @throws InvalidInputError for text that is not JSON, does not say that it is, or exceeds the limits of `readClientJson`.
 */
export async function requestJson(context: Context): Promise<unknown> {
  const text = await context.req.text();
  if (text === '') return null;
  const contentType = context.req.header('content-type') ?? '';
  if (!/^application\/([\w.+-]+\+)?json\b/i.test(contentType)) {
    throw new InvalidInputError([
      {
        type: 'model_attributes_type',
        loc: ['body'],
        msg: `Input should be JSON with the header content-type: application/json, not '${contentType.slice(0, 100)}'`,
        input: text.slice(0, 200),
      },
    ]);
  }
  const reading = await readClientJson(text, context.get('client'));
  if (reading.ok) return reading.value;
  throw new InvalidInputError([
    {
      type: reading.isOverLimit ? 'json_over_limit' : 'json_invalid',
      loc: ['body', reading.position],
      msg: reading.isOverLimit ? 'JSON over a limit' : 'JSON decode error',
      input: {},
      ctx: { error: reading.message },
    },
  ]);
}
