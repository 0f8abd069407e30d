/**
 * Ways to ask a model for an action. Servers differ in what they can do: the first that one does not refuse
 * is kept.
 */
export const ANSWER_FORMATS = ['json_schema', 'tool', 'json_object', 'plain'] as const;
export type AnswerFormat = (typeof ANSWER_FORMATS)[number];

export type JsonSchema = Record<string, unknown>;

/** The fields of an answer's message that may hold the action. */
interface Message {
  readonly content?: string | null;
  readonly tool_calls?: readonly {
    readonly type: string;
    readonly function?: { readonly arguments: string };
  }[];
}

const NAME = 'set_knobs';

/** The fields of a request that ask for an answer in a format. */
export function formatFields(format: AnswerFormat, schema: JsonSchema) {
  switch (format) {
    case 'json_schema':
      return {
        response_format: { type: 'json_schema' as const, json_schema: { name: NAME, schema, strict: true } },
      };
    case 'tool':
      return {
        tools: [
          {
            type: 'function' as const,
            function: { name: NAME, description: 'Sets the knobs for the next window', parameters: schema },
          },
        ],
        tool_choice: { type: 'function' as const, function: { name: NAME } },
      };
    case 'json_object':
      return { response_format: { type: 'json_object' as const } };
    case 'plain':
      return {};
  }
}

/** The text in which the action stands; `null` when there is none. */
export function answerText(message: Message | undefined): string | null {
  const [call] = message?.tool_calls ?? [];
  if (call?.function) return call.function.arguments;
  return message?.content ?? null;
}

/** The JSON object in an answer, also inside prose or a fence; the last one, since models think first. */
export function jsonIn(text: string): unknown {
  const whole = parsed(text);
  if (whole !== undefined) return whole;
  let found: unknown;
  for (let start = text.indexOf('{'); start >= 0; start = text.indexOf('{', start + 1)) {
    const end = objectEnd(text, start);
    const object = end < 0 ? undefined : parsed(text.slice(start, end));
    if (object === undefined) continue;
    found = object;
    start = end - 1;
  }
  return found;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Behind the brace that closes the one at `start`; -1 when none does. */
function objectEnd(text: string, start: number): number {
  let depth = 0;
  let isText = false;
  for (let i = start; i < text.length; i++) {
    const character = text[i];
    if (isText) {
      if (character === '\\') i++;
      else if (character === '"') isText = false;
    } else if (character === '"') isText = true;
    else if (character === '{') depth++;
    else if (character === '}' && --depth === 0) return i + 1;
  }
  return -1;
}
