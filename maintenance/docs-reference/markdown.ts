/** Plain text as Markdown: nothing of it outside code spans is read as HTML or as a template. */
export function prose(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part, index) => (index % 2 ? part : part.replaceAll('<', '&lt;').replaceAll('{{', '&#123;&#123;')))
    .join('');
}

/** A table; without rows, nothing. Cells are plain text. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [];
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const cell = (text: string) =>
    prose(text)
      .replace(/[ \n\t]+/g, ' ')
      .replaceAll('|', '\\|')
      .trim();
  return [
    [line(headings), line(headings.map(() => '---')), ...rows.map((row) => line(row.map(cell)))].join('\n'),
  ];
}

/** Text in a code span. */
export function code(text: string): string {
  return text === '' ? '' : `\`${text.replaceAll('`', '')}\``;
}

/** A block of code. */
export function block(language: string, text: string): string {
  return `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``;
}
