// `npm run docs:reference`: generates the reference pages of the documentation from what they describe.
import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { generated } from '../../docs/.vitepress/pages.ts';
import { commandLinePage } from './command-line-page.ts';
import { typescriptPage } from './typescript-page.ts';

const root = dirname(dirname(import.meta.dirname));
const pages: Record<string, string> = { 'command-line': await commandLinePage() };

for (const file of globSync('packages/*/package.json', { cwd: root }).sort()) {
  const { name, description, exports } = JSON.parse(readFileSync(join(root, file), 'utf8'));
  const entries = Object.entries<string>(exports)
    .filter(([, path]) => typeof path === 'string' && path.endsWith('.ts'))
    .map(([entry, path]) => [join(name, entry), join(root, dirname(file), path)] as const);
  if (entries.length > 0)
    pages[`typescript-${name.replace('@servegym/', '')}`] = typescriptPage(name, description, entries);
}

const python = process.env.SERVEGYM_PYTHON ?? 'python3';
pages.python = execFileSync(
  python,
  [join(import.meta.dirname, 'python_page.py'), join(root, 'clients/python/src/servegym')],
  { encoding: 'utf8' },
);

rmSync(generated, { recursive: true, force: true });
mkdirSync(generated, { recursive: true });
for (const [name, markdown] of Object.entries(pages)) writeFileSync(join(generated, `${name}.md`), markdown);
