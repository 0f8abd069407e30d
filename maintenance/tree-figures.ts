// `npx node maintenance/tree-figures.ts [REV ...]`: the size of HEAD, or of other git revisions side by side, as a Markdown
// table, and the functions over 100 lines.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { parseSync, type Span, Visitor } from 'oxc-parser';

const LONG_FUNCTION_LINES = 100;
const CODE = /\.(ts|tsx|mjs|py|css)$/;
const SCRIPT = /\.(ts|tsx|mjs)$/;
const TEST = /\.(test|fixture)\.\w+$|(^|\/)(test|tests|fixtures|browser)\/|(^|\/)test_\w+\.py$/;

/** Figures of the tracked files under `folder`: the table's rows, in order, and the long functions. */
function measureTree(folder: string, paths: readonly string[]) {
  const read = (path: string) => readFileSync(join(folder, path), 'utf8');
  const lines = { source: 0, test: 0 };
  const longFunctions: string[] = [];
  for (const path of paths) {
    if (!CODE.test(path)) continue;
    const text = read(path);
    lines[TEST.test(path) ? 'test' : 'source'] += text.match(/[^\n]*\n|[^\n]+$/g)?.length ?? 0;
    if (!SCRIPT.test(path) || TEST.test(path)) continue;
    const lineAt = (offset: number) => text.slice(0, offset).split('\n').length;
    const look = ({ start, end }: Span) => {
      const length = lineAt(end) - lineAt(start) + 1;
      if (length > LONG_FUNCTION_LINES) longFunctions.push(`${path}:${lineAt(start)} (${length} lines)`);
    };
    const looks = { FunctionDeclaration: look, FunctionExpression: look, ArrowFunctionExpression: look };
    new Visitor(looks).visit(parseSync(path, text).program);
  }

  /** Names that a module exports, with those that it passes on from files of its package. */
  const exportedNames = (path: string): string[] =>
    parseSync(path, read(path)).module.staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ exportName, moduleRequest }) => {
        if (exportName.kind !== 'None') return [exportName.name ?? 'default'];
        const from = moduleRequest!.value;
        return from.startsWith('.') ? exportedNames(posix.join(posix.dirname(path), from)) : [`* of ${from}`];
      }),
    );
  const entryRows: [string, number][] = [];
  let names = 0;
  for (const path of paths) {
    if (!/^packages\/[^/]+\/package\.json$/.test(path)) continue;
    const manifest = JSON.parse(read(path));
    const entries = typeof manifest.exports === 'string' ? { '.': manifest.exports } : manifest.exports;
    const counts: [string, number][] = [];
    const ofPackage = new Set<string>();
    for (const [entry, target] of Object.entries<string>(entries ?? {})) {
      if (!SCRIPT.test(target)) continue;
      const ofEntry = new Set(exportedNames(posix.join(posix.dirname(path), target)));
      for (const name of ofEntry) ofPackage.add(name);
      counts.push([`names in \`${posix.join(manifest.name, entry)}\``, ofEntry.size]);
    }
    entryRows.push(...counts);
    if (counts.length > 1) entryRows.push([`names in all entries of \`${manifest.name}\``, ofPackage.size]);
    names += ofPackage.size;
  }

  return {
    rows: new Map<string, number>([
      ['tracked files', paths.length],
      ['lines of code (ts, tsx, mjs, py, css)', lines.source + lines.test],
      ['lines of sources', lines.source],
      ['lines of tests', lines.test],
      [`functions over ${LONG_FUNCTION_LINES} lines, outside tests`, longFunctions.length],
      ['names in all package entries', names],
      ...entryRows,
    ]),
    longFunctions,
  };
}

function git(...options: string[]): string {
  return execFileSync('git', options, { encoding: 'utf8', maxBuffer: 2 ** 28 });
}

function measureRevision(revision: string) {
  const folder = mkdtempSync(join(tmpdir(), 'tree-figures-'));
  try {
    const archive = join(folder, '.archive.tar');
    git('archive', '--output', archive, revision);
    execFileSync('tar', ['-xf', archive, '-C', folder]);
    const paths = git('ls-tree', '-r', '--name-only', '-z', revision).split('\0').filter(Boolean);
    return measureTree(folder, paths);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

process.chdir(git('rev-parse', '--show-toplevel').trim());
const [first = 'HEAD', ...more] = process.argv.slice(2);
const trees = [first, ...more].map((revision) => [revision, measureRevision(revision)] as const);
console.log(`| | ${trees.map(([title]) => title).join(' | ')} |\n|---|${'---:|'.repeat(trees.length)}`);
for (const row of new Set(trees.flatMap(([, { rows }]) => [...rows.keys()])))
  console.log(`| ${row} | ${trees.map(([, { rows }]) => rows.get(row) ?? '—').join(' | ')} |`);
for (const [title, { longFunctions }] of trees)
  console.log(
    `\nFunctions over ${LONG_FUNCTION_LINES} lines, ${title}:\n\n- ${longFunctions.join('\n- ') || 'none'}`,
  );
