// `npm run build`: compiles every published package into `dist/packages/<folder>`, as npm publishes it, and packs each
// into `dist/tarballs`.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, extname, join, relative } from 'node:path';
import { projectEnvironment, root } from './setup/commands.mjs';
import { ensureNode } from './setup/node.mjs';
import { ensureBuilt, ensurePackages } from './setup/packages.mjs';

/** Published packages by folder, those that others import first. */
const PUBLISHED =
  'simulator profiles openenv jobs console environments endpoint operators element agents servegym'.split(
    ' ',
  );

/** Folders beside `src` that a package reads at run time. */
const ASSETS = { agents: ['weights'], console: ['dist'], element: ['dist'] };

/** The Node that all packages need, as `servegym` says it. */
const { engines } = manifestOf('servegym');
const staging = join(root, 'dist', 'packages');
const tarballs = join(root, 'dist', 'tarballs');

await ensurePackages();
await ensureNode();
await ensureBuilt('console', 'element');
rmSync(join(root, 'dist'), { recursive: true, force: true });
execFileSync('tsc', ['-b', 'packages/servegym/tsconfig.build.json'], {
  cwd: root,
  env: projectEnvironment(),
  stdio: 'inherit',
});
mkdirSync(tarballs, { recursive: true });
for (const folder of PUBLISHED) {
  stage(folder);
  execFileSync('npm', ['pack', '--silent', '--pack-destination', tarballs], { cwd: join(staging, folder) });
}
console.log(`Packed ${PUBLISHED.length} packages into ${relative(root, tarballs)}`);

/** Lays out one package as it is published. `lib` replaces `src` at the same depth, so relative paths keep. */
function stage(folder) {
  const source = join(root, 'packages', folder);
  const target = join(staging, folder);
  const manifest = manifestOf(folder);
  mkdirSync(target, { recursive: true });
  if (!ASSETS[folder]?.includes('dist')) {
    cpSync(join(root, 'dist', 'build', folder, 'src'), join(target, 'lib'), { recursive: true });
    for (const path of filesIn(join(source, 'src'), /\.(parquet|wasm|json|md|py|txt)$/))
      if (isAsset(path)) cpSync(join(source, 'src', path), join(target, 'lib', path));
    for (const path of filesIn(join(target, 'lib'), /\.(js|d\.ts)$/)) rewrite(join(target, 'lib', path));
  }
  for (const asset of ASSETS[folder] ?? []) {
    cpSync(join(source, asset), join(target, asset), {
      recursive: true,
      filter: (path) => !basename(path).startsWith('.'),
    });
  }
  for (const file of ['README.md', 'LICENSE'])
    cpSync(file === 'LICENSE' ? join(root, file) : join(source, file), join(target, file));
  const files = readdirSync(target).filter((name) => name !== 'README.md' && name !== 'LICENSE');
  const published = publishedManifest(manifest, files);
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(published, null, 2)}\n`);
}

function manifestOf(folder) {
  return JSON.parse(readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8'));
}

/** Paths below `folder` that match. */
function filesIn(folder, pattern) {
  return readdirSync(folder, { recursive: true }).filter((path) => pattern.test(path));
}

/** Data that the code reads at run time, and not only the tests. */
function isAsset(path) {
  return !/(^|\/)(golden-|fixtures\/)/.test(path);
}

/**
 * Names compiled files where TypeScript leaves the source's name: in declarations, and in URLs of modules. Says of JSON
 * in declarations that it is JSON, which TypeScript leaves out.
 */
function rewrite(path) {
  const text = readFileSync(path, 'utf8');
  const isDeclaration = path.endsWith('.d.ts');
  const rewritten = isDeclaration
    ? text
        .replace(/((?:from|import)\s*\(?\s*['"]\.[^'"]*)\.tsx?(['"])/g, '$1.js$2')
        .replace(/(from ['"]\.[^'"]*\.json['"]);/g, "$1 with { type: 'json' };")
    : text.replace(/(new URL\(\s*(['"`])[^'"`]*)\.ts(\2,\s*import\.meta\.url)/g, '$1.js$3');
  if (rewritten !== text) writeFileSync(path, rewritten);
}

function publishedManifest(manifest, files) {
  const { devDependencies, scripts, exports, bin, ...kept } = { engines, ...manifest };
  const compiled = Object.entries(exports ?? {}).map(([name, path]) => [name, publishedTarget(path)]);
  return {
    ...kept,
    ...(bin && { bin: Object.fromEntries(Object.entries(bin).map(([name, path]) => [name, library(path)])) }),
    ...(exports && { exports: { ...Object.fromEntries(compiled), './package.json': './package.json' } }),
    files,
  };
}

function publishedTarget(path) {
  if (typeof path !== 'string') return path;
  if (extname(path) !== '.ts') return library(path);
  return { types: library(path).replace(/\.js$/, '.d.ts'), default: library(path) };
}

function library(path) {
  return path.replace(/^\.\/src\//, './lib/').replace(/\.ts$/, '.js');
}
