import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Section } from './pages.ts';

/**
 * Writes the site for language models (llmstxt.org): `llms.txt` lists the pages, `llms-full.txt` holds their texts, and
 * each page stands beside its HTML as Markdown.
 *
 * @param address of the site, with the last slash
 */
export function writeForLanguageModels(
  folder: string,
  site: { readonly title: string; readonly description: string; readonly address: string },
  sections: readonly Section[],
): void {
  const opening = `# ${site.title}\n\n> ${site.description}\n`;
  const list = sections.map(({ title, pages }) => {
    const lines = pages.map(
      (page) => `- [${page.title}](${site.address}${page.path}.md): ${firstSentence(page.markdown)}`,
    );
    return `## ${title}\n\n${lines.join('\n')}\n`;
  });
  const pages = sections.flatMap((section) => section.pages);
  writeFileSync(join(folder, 'llms.txt'), [opening, ...list].join('\n'));
  writeFileSync(
    join(folder, 'llms-full.txt'),
    [opening, ...pages.map(({ markdown }) => markdown)].join('\n'),
  );
  for (const { path, markdown } of pages) writeFileSync(join(folder, `${path}.md`), markdown);
}

/** First sentence of the first paragraph, as plain text. */
function firstSentence(markdown: string): string {
  const paragraph = markdown.split(/\n{2,}/).find((block) => /^(?!```)[\w`[*]/.test(block)) ?? '';
  const text = paragraph.replace(/\s+/g, ' ').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');
  return /^.*?[.:](?=\s|$)/.exec(text)?.[0].replace(/:$/, '.') ?? text;
}
