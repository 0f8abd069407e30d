import { existsSync, statSync } from 'node:fs';
import { dirname, relative, resolve, sep } from 'node:path';
import type { MarkdownRenderer } from 'vitepress';
import { docs } from './pages.ts';

export const REPOSITORY = 'https://github.com/servegym/servegym';
const root = dirname(docs);

/** Lets links of pages to files outside the folder of the pages lead to the repository. */
export function linkRepository(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('repository-links', ({ tokens, env }) => {
    for (const { children } of tokens)
      for (const token of children ?? []) {
        const link = token.type === 'link_open' ? token.attrGet('href') : null;
        if (link) token.attrSet('href', repositoryLink(link, env.relativePath) ?? link);
      }
  });
}

/**
 * Address in the repository of a file that a page links to; `undefined` for pages, anchors and other sites.
 *
 * @param page path of the page from the folder of the pages
 * @throws Error when there is no such file
 */
export function repositoryLink(link: string, page: string): string | undefined {
  if (/^([a-z]+:|#|\/)/.test(link)) return undefined;
  const [path, anchor] = link.split('#');
  const file = resolve(docs, dirname(page), path!);
  if (file.startsWith(docs + sep) && /(\.md|\.png|\.svg)$/.test(file)) return undefined;
  if (!file.startsWith(root + sep) || !existsSync(file))
    throw new Error(`docs/${page} links to ${link}, which is not there. Correct the link.`);
  const kind = statSync(file).isDirectory() ? 'tree' : 'blob';
  const address = `${REPOSITORY}/${kind}/main/${relative(root, file).split(sep).join('/')}`;
  return anchor ? `${address}#${anchor}` : address;
}
