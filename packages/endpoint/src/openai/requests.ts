import { readClientJson } from '@servegym/openenv/protocol';
import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { z } from 'zod';

const MOST_CHOICES = 128;
const MOST_PROMPTS = 1024;
const MOST_MESSAGES = 10_000;
/** Entries of all lists and objects of a body: more than a context of a million token ids. */
const MOST_ENTRIES = 1_100_000;

/** A list whose entries are looked at only when there are not too many: each that is wrong takes time. */
function few<Entry extends z.ZodType>(entry: Entry, least: number, most: number) {
  return z.array(z.unknown()).min(least).max(most).pipe(z.array(entry));
}

const streamOptions = z.object({
  include_usage: z.boolean().nullish(),
  continuous_usage_stats: z.boolean().nullish(),
});

/** Fields that the two APIs share. Those that steer sampling are taken and have no effect: there is no model. */
const common = {
  model: z.string().nullish(),
  stream: z.boolean().nullish(),
  stream_options: streamOptions.nullish(),
  max_tokens: z.int().min(1).nullish(),
  min_tokens: z.int().min(0).nullish(),
  ignore_eos: z.boolean().nullish(),
  n: z.int().min(1).max(MOST_CHOICES).nullish(),
  stop: z.union([z.string().min(1), few(z.string().min(1), 0, 16)]).nullish(),
  seed: z.int().nullish(),
  priority: z.int().nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
};

type Prompts = string | number[] | string[] | number[][];

/** A schema would note every wrong entry of a million. */
function isPrompts(value: unknown): boolean {
  if (typeof value === 'string' || isTokenIds(value)) return true;
  if (!Array.isArray(value) || value.length === 0 || value.length > MOST_PROMPTS) return false;
  return value.every((prompt) => typeof prompt === 'string') || value.every(isTokenIds);
}

function isTokenIds(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((id) => Number.isSafeInteger(id) && id >= 0);
}

export const completionRequest = z.looseObject({
  ...common,
  prompt: z.custom<Prompts>(
    isPrompts,
    `Expected a text, an array of token ids, or an array of up to ${MOST_PROMPTS} of either`,
  ),
  logprobs: z.union([z.boolean(), z.int()]).nullish(),
  echo: z.boolean().nullish(),
  suffix: z.string().nullish(),
  best_of: z.int().min(1).nullish(),
});
export type CompletionRequest = z.infer<typeof completionRequest>;

const contentPart = z.looseObject({ type: z.string(), text: z.string().optional() });

const message = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), few(contentPart, 0, MOST_MESSAGES)]).nullish(),
});
export type Message = z.infer<typeof message>;

export const chatRequest = z.looseObject({
  ...common,
  messages: few(message, 1, MOST_MESSAGES),
  max_completion_tokens: z.int().min(1).nullish(),
  logprobs: z.union([z.boolean(), z.int()]).nullish(),
  tools: z.array(z.unknown()).nullish(),
  tool_choice: z.unknown().optional(),
});
export type ChatRequest = z.infer<typeof chatRequest>;

const { max_tokens: _, n: __, response_format: ___, ...ofResponses } = common;

/** A request of the Responses API; what a conversation holds beside messages is text without a role. */
export const responsesRequest = z.looseObject({
  ...ofResponses,
  input: z.union([z.string(), few(message, 1, MOST_MESSAGES)]),
  instructions: z.string().nullish(),
  max_output_tokens: z.int().min(1).nullish(),
  previous_response_id: z
    .null('Expected none: the endpoint keeps no responses. Send the conversation in `input`.')
    .optional(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
  tools: z.array(z.unknown()).nullish(),
  tool_choice: z.unknown().optional(),
});

export const tokenizeRequest = z.union([
  z.looseObject({ model: z.string().nullish(), prompt: z.string() }),
  z.looseObject({ model: z.string().nullish(), messages: few(message, 1, MOST_MESSAGES) }),
]);

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
  const bytes = new Uint8Array(await context.req.arrayBuffer());
  const reading = await readClientJson(bytes, undefined, MOST_ENTRIES);
  if (!reading.ok) {
    const [code, detail] = reading.isOverLimit
      ? ['json_over_limit', `${reading.message}.`]
      : ['invalid_json', 'Expected the body to be JSON.'];
    throw new ApiError(400, code, detail);
  }
  const read = schema.safeParse(reading.value);
  if (read.success) return read.data;
  const issue = read.error.issues[0];
  const field = issue.path.join('.');
  const what = field === '' ? 'The body' : `\`${field}\``;
  throw new ApiError(400, 'invalid_value', `${what}: ${issue.message}`, field === '' ? null : field);
}
