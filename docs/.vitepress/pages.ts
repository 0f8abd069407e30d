import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import type { MarkdownRenderer } from 'vitepress';

/** The folder of the pages. */
export const docs = dirname(import.meta.dirname);

export interface Page {
  /** Path from the folder of the pages, without the ending: `tune`. */
  readonly path: string;
  /** The first heading. */
  readonly title: string;
  readonly markdown: string;
}

export interface Section {
  readonly title: string;
  readonly pages: readonly Page[];
}

/** Sections of the sidebar, with the paths of their pages in order. */
const SECTIONS: Readonly<Record<string, readonly string[]>> = {
  'Get started': [
    'train-an-agent',
    'gpus-for-my-trace',
    'your-own-environment',
    'first-visits',
    'how-it-works',
  ],
  'Answers for operators': [
    'traces',
    'tune',
    'plan',
    'diff',
    'rag-day',
    'running-server',
    'real-servers',
    'endpoint',
  ],
  Environments: ['play', 'environments', 'fleet', 'inferencegym', 'traffic', 'your-own-task'],
  Agents: ['agents', 'language-models', 'policies', 'integrations', 'benchmarks', 'seasons'],
  'Running it': ['console', 'serving', 'deploy', 'scaling'],
  'The simulator': ['element', 'engine-profiles', 'kernel-tables', 'schedules', 'fidelity', 'reference-data'],
  Help: ['glossary', 'faq', 'troubleshooting', 'openenv-conformance'],
};

/** Folder into which `npm run docs:reference` generates pages. */
export const generated = join(dirname(docs), 'dist', 'reference');

/** Sections with the pages that are there; a page that no section names stands under `More`. */
export function sections(): Section[] {
  const rest = new Map(
    globSync('*.md', { cwd: docs, exclude: ['index.md', 'README.md'] })
      .sort()
      .map((file) => [file.slice(0, -'.md'.length), readPage(docs, file)]),
  );
  const found = Object.entries(SECTIONS).map(([title, paths]) => {
    const pages = paths.flatMap((path) => rest.get(path) ?? []);
    for (const { path } of pages) rest.delete(path);
    return { title, pages };
  });
  return [
    ...found,
    { title: 'More', pages: [...rest.values()] },
    { title: 'Reference', pages: referencePages() },
  ].filter(({ pages }) => pages.length > 0);
}

/** Generated pages, below `reference/`. */
export function referencePages(): Page[] {
  const files = globSync('reference/*.md', { cwd: dirname(generated) }).sort();
  if (files.length === 0)
    throw new Error(`Expected reference pages in ${generated}, found none. Run \`npm run docs:reference\`.`);
  return files.map((file) => readPage(dirname(generated), file));
}

/** Folder into which `npm run docs:servers` generates pages and `models.json`. */
export const generatedServers = join(dirname(docs), 'dist', 'servers');

/** Pages of models on GPUs; none before `npm run docs:servers`. */
export function serverPages(): { params: { model: string; gpu: string }; content: string }[] {
  return globSync('*/*.md', { cwd: generatedServers }).map((file) => {
    const [model, gpu] = file.slice(0, -'.md'.length).split(sep);
    return {
      params: { model: model!, gpu: gpu! },
      content: readFileSync(join(generatedServers, file), 'utf8'),
    };
  });
}

function readPage(folder: string, file: string): Page {
  const markdown = readFileSync(join(folder, file), 'utf8');
  const title = /^# (.+)$/m.exec(markdown)?.[1];
  if (title === undefined)
    throw new Error(`Expected a heading such as "# Title" in ${join(folder, file)}, found none. Add one.`);
  return { path: file.slice(0, -'.md'.length), title, markdown };
}

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
