import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { describe, it } from 'node:test';
import { importCircles } from './import-circles.ts';
import { brokenRules, type Manifest } from './layout-rules.ts';
import { readSourceFile, type SourceFile } from './source-file.ts';

const root = dirname(import.meta.dirname);
const workspace = manifestIn(root);

function manifestIn(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

/** The sources of a package, by their path from its folder. */
function sourcesIn(folder: string): Map<string, SourceFile> {
  const found = globSync('**/*.{ts,tsx}', { cwd: folder, exclude: ['**/dist', '**/node_modules'] });
  return new Map(
    found.map((path) => {
      const full = join(folder, path);
      return [path.split(sep).join('/'), readSourceFile(full, readFileSync(full, 'utf8'))];
    }),
  );
}

/** Broken rules of `text` as a file of the package `name`. */
function rulesBrokenBy(name: string, text: string, path = 'src/made-up.ts'): string[] {
  const folder = join(root, 'packages', name.replace('@servegym/', ''));
  return brokenRules(path, readSourceFile(path, text), manifestIn(folder), workspace);
}

describe('the layout rules', () => {
  for (const path of globSync('packages/*/package.json', { cwd: root }).sort()) {
    const folder = dirname(join(root, path));
    const own = manifestIn(folder);
    it(`hold in every source of ${own.name}`, () => {
      const sources = sourcesIn(folder);
      assert.notEqual(sources.size, 0, `${own.name} has no sources`);
      const broken = [...sources].flatMap(([path, source]) => brokenRules(path, source, own, workspace));
      assert.deepEqual(broken, []);
      assert.deepEqual(importCircles(sources), []);
    });
  }
});

describe('an arrow that points up', () => {
  const above = /imports `@servegym\/environments.*`, which is above it/;

  it('is found in each way to write an import', () => {
    for (const text of [
      "import { llmserve } from '@servegym/environments';",
      "import '@servegym/environments';",
      "import type { ServeAction } from '@servegym/environments';",
      "import { type ServeAction } from '@servegym/environments';",
      "export * from '@servegym/environments';",
      "export type { ServeAction } from '@servegym/environments';",
      "export { llmserve } from '@servegym/environments/deep/path.ts';",
      "export type Action = import('@servegym/environments').ServeAction;",
      "const { llmserve } = await import('@servegym/environments');",
      "import environments = require('@servegym/environments');",
    ]) {
      assert.match(rulesBrokenBy('@servegym/openenv', text)[0] ?? '', above, text);
    }
  });

  it('is found in a test too', () => {
    const text = "import { llmserve } from '@servegym/environments';";
    assert.match(rulesBrokenBy('@servegym/openenv', text, 'src/made-up.test.ts')[0] ?? '', above);
  });

  it('is not confused with one that points down, or with text in a comment or a string', () => {
    const text = "import { llmserve } from '@servegym/environments';";
    assert.deepEqual(rulesBrokenBy('@servegym/agents', text), []);
    assert.deepEqual(rulesBrokenBy('@servegym/openenv', `// ${text}\nexport const text = "${text}";`), []);
  });
});

describe('a relative import', () => {
  it('stays in its package and carries its extension', () => {
    assert.deepEqual(rulesBrokenBy('servegym', "import { a } from '../a.ts';", 'src/b/c.ts'), []);
    assert.match(
      rulesBrokenBy('servegym', "import { a } from '../../agents/src/a.ts';")[0] ?? '',
      /outside its package/,
    );
    const server = "import { startRedis } from '../../../maintenance/test-servers/redis.ts';";
    assert.match(rulesBrokenBy('servegym', server)[0] ?? '', /outside its package/);
    assert.match(rulesBrokenBy('servegym', "import { a } from './a';")[0] ?? '', /without its extension/);
  });
});

describe('a circle of imports', () => {
  const circlesOf = (texts: Readonly<Record<string, string>>) =>
    importCircles(new Map(Object.entries(texts).map(([path, text]) => [path, readSourceFile(path, text)])));

  it('is found, however long it is and wherever one enters it', () => {
    const found = circlesOf({
      'src/start.ts': "import './b/two.ts';",
      'src/one.ts': "export * from './b/two.ts';",
      'src/b/two.ts': "import { three } from './three.ts';",
      'src/b/three.ts': "import './four.ts';\nimport { one, type One } from '../one.ts';",
      'src/b/four.ts': '',
    });
    assert.deepEqual(found, ['src/b/two.ts -> src/b/three.ts -> src/one.ts -> src/b/two.ts']);
    assert.deepEqual(circlesOf({ 'a.ts': "import './a.ts';" }), ['a.ts -> a.ts']);
  });

  it('is none where two ways lead to a file, or where only types or `import()` lead back', () => {
    const found = circlesOf({
      'top.ts': "import './left.ts';\nimport './right.ts';",
      'left.ts': "import './bottom.ts';",
      'right.ts': "import './bottom.ts';",
      'bottom.ts': "import type { Top } from './top.ts';\nexport const later = () => import('./top.ts');",
    });
    assert.deepEqual(found, []);
  });
});

describe('a test', () => {
  it('starts servers by what stands in maintenance, and reads fixtures of packages below it', () => {
    const server = "import { startRedis } from '../../../maintenance/test-servers/redis.ts';";
    assert.deepEqual(rulesBrokenBy('servegym', server, 'src/made-up.test.ts'), []);
    const fixture =
      "import { MEASURED_LOADS } from '../../../benchmarks/fidelity/measured-figures.fixture.ts';";
    assert.deepEqual(rulesBrokenBy('servegym', fixture, 'src/made-up.test.ts'), []);
    for (const [name, path] of [
      ['servegym', 'src/made-up.ts'],
      ['@servegym/simulator', 'src/made-up.test.ts'],
    ] as const)
      assert.match(rulesBrokenBy(name, fixture, path)[0] ?? '', /outside its package/);
    const other = "import { start } from '../../../maintenance/start.ts';";
    assert.match(rulesBrokenBy('servegym', other, 'src/made-up.test.ts')[0] ?? '', /outside its package/);
  });
});

describe('a package', () => {
  it('declares what it imports; its tests may use what the workspace develops with', () => {
    const text = "import fc from 'fast-check';";
    assert.match(rulesBrokenBy('@servegym/agents', text)[0] ?? '', /does not declare/);
    assert.deepEqual(rulesBrokenBy('@servegym/agents', text, 'src/made-up.test.ts'), []);
  });

  it('is the console only with types of the protocol', () => {
    const specifier = '@servegym/openenv/protocol';
    assert.deepEqual(rulesBrokenBy('@servegym/console', `import type { X } from '${specifier}';`), []);
    assert.match(
      rulesBrokenBy('@servegym/console', `import { X } from '${specifier}';`)[0] ?? '',
      /above it/,
    );
    assert.match(
      rulesBrokenBy('@servegym/console', "import type { X } from '@servegym/openenv';")[0] ?? '',
      /above it/,
    );
  });
});

describe('the simulator', () => {
  it('has no I/O, no clock and no chance of its own', () => {
    for (const text of [
      "import { readFileSync } from 'node:fs';",
      'export const now = Date.now();',
      'export const now = new Date();',
      'export const now = Date();',
      'export const now = performance.now();',
      'setTimeout(() => {}, 1);',
      'export const draw = Math.random();',
      'const { random } = Math;',
      "export const draw = Math['random']();",
      "console.log('arrived');",
      'globalThis.fetch;',
    ]) {
      assert.notDeepEqual(rulesBrokenBy('@servegym/simulator', text), [], text);
    }
  });

  it('may name a property or a variable of its own like a global, and compute', () => {
    const text =
      'export const row = { Date: 1, performance: Math.max(1, 2) };\nexport const date = row.Date;';
    const parameters =
      'export const first = (self: number[], { window } = { window: 2 }) => self[0] + window;';
    assert.deepEqual(rulesBrokenBy('@servegym/simulator', parameters), []);
    const calendar = 'export const month = new Date(Date.UTC(2023, 10, 16)).getUTCMonth();';
    assert.deepEqual(rulesBrokenBy('@servegym/simulator', calendar), []);
    assert.deepEqual(rulesBrokenBy('@servegym/simulator', text), []);
  });
});
