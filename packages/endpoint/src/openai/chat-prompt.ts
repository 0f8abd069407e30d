import { ApiError } from './api-error.ts';
import type { Message } from './request-schemas.ts';

/**
 * A conversation as one text: the definitions of the tools, a line `role: content` for each message, and the start of
 * the reply. A conversation that goes on begins with the text of the one before, so that its prefix is found cached.
 * @throws ApiError for content that is not text
 */
export function chatPrompt(messages: readonly Message[], tools: readonly unknown[] = []): string {
  const head = tools.length === 0 ? '' : `${JSON.stringify(tools)}\n`;
  const lines = messages.map(({ role, content }, i) => `${role}: ${textOf(content, i)}\n`);
  return `${head}${lines.join('')}assistant:`;
}

function textOf(content: Message['content'], index: number): string {
  if (content === null || content === undefined) return '';
  if (typeof content === 'string') return content;
  return content
    .map(({ type, text }) => {
      if (text !== undefined) return text;
      throw new ApiError(
        400,
        'unsupported_content',
        `Expected the parts of \`messages[${index}].content\` to be text, got \`${type}\`. The simulated model reads nothing else.`,
        'messages',
      );
    })
    .join('');
}
