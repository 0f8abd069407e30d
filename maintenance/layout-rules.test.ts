// biome.json and knip.json hold most rules about imports: what a package declares, what the simulator may use, circles.
// Here are those that neither knows, and a proof that biome.json finds what it should.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, it } from 'node:test';
import { parseSync, Visitor } from 'oxc-parser';
import { temporaryFolder } from './test-servers/temporary-folder.ts';

const root = dirname(import.meta.dirname);

/** The packages of ours that each package may import. */
const BELOW: Readonly<Record<string, readonly string[]>> = {
  servegym: [
    ...['agents', 'endpoint', 'environments', 'jobs', 'openenv', 'operators', 'profiles', 'simulator'],
    // Its built pages, no module.
    'console',
  ],
  operators: ['jobs', 'profiles', 'simulator'],
  endpoint: ['openenv', 'profiles', 'simulator'],
  agents: ['environments', 'jobs', 'openenv', 'profiles', 'simulator'],
  environments: ['openenv', 'profiles', 'simulator'],
  console: [],
  // It bundles all that it uses.
  element: [],
  jobs: [],
  openenv: [],
  profiles: ['simulator'],
  simulator: [],
};
/** And, for tests or for types alone, what only `devDependencies` may name. */
const DEVELOPED_WITH: Readonly<Record<string, readonly string[]>> = {
  console: ['openenv', 'operators'],
  element: ['agents', 'environments', 'jobs', 'operators', 'profiles', 'simulator'],
  simulator: ['profiles'],
};

interface Request {
  /** `undefined`: computed. */
  readonly specifier: string | undefined;
  readonly isTypeOnly: boolean;
}

/** What a source imports and passes on. */
function requestsOf(path: string, text: string): Request[] {
  const { module } = parseSync(path, text);
  return [
    ...module.staticImports.map(({ moduleRequest, entries }) => ({
      specifier: moduleRequest.value,
      isTypeOnly: entries.length > 0 && entries.every(({ isType }) => isType),
    })),
    ...module.staticExports.flatMap(({ entries }) =>
      entries.map(({ moduleRequest, isType }) => ({ specifier: moduleRequest?.value, isTypeOnly: isType })),
    ),
    ...module.dynamicImports.map(({ moduleRequest: { start, end } }) => ({
      specifier: /^(['"`])([^$]*)\1$/.exec(text.slice(start, end))?.[2],
      isTypeOnly: false,
    })),
  ];
}

/** The requests of a source that its package may not make. */
function refused(path: string, text: string): (string | undefined)[] {
  const [, name] = path.split('/');
  const isTest = !/^packages\/\w+\/src\//.test(path) || /\.(test|fixture)\.tsx?$|\/fixtures\//.test(path);
  const wrong = requestsOf(path, text).filter(({ specifier, isTypeOnly }) => {
    if (specifier === undefined) return false;
    if (!specifier.startsWith('.'))
      return (
        name === 'console' &&
        !(isTest || isTypeOnly || specifier === '@servegym/operators/report') &&
        specifier.startsWith('@servegym/')
      );
    const target = relative(root, join(root, dirname(path), specifier));
    const [folder, owner] = target.split('/');
    if (folder === 'packages' && owner === name) return false;
    // Tests start servers by what stands in maintenance, and read data of the tests below them.
    const isForTests =
      target.startsWith('maintenance/test-servers/') ||
      (target.endsWith('.fixture.ts') &&
        (folder === 'benchmarks' ? name === 'servegym' : BELOW[name!]!.includes(owner!)));
    return !(isTest && isForTests);
  });
  return wrong.map(({ specifier }) => specifier);
}

describe('the packages', () => {
  for (const [name, below] of Object.entries(BELOW)) {
    const folder = join(root, 'packages', name);
    it(`${name} declares only packages below it`, () => {
      const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      const ours = (dependencies: object = {}) =>
        Object.keys(dependencies).flatMap(
          (each) => /^(?:@servegym\/)?(servegym|(?<=\/)\w+)$/.exec(each)?.[1] ?? [],
        );
      const declared = ours({ ...manifest.dependencies, ...manifest.peerDependencies });
      assert.deepEqual(
        declared.filter((each) => !below.includes(each)),
        [],
      );
      const developed = [...below, ...(DEVELOPED_WITH[name] ?? [])];
      assert.deepEqual(
        ours(manifest.devDependencies).filter((each) => !developed.includes(each)),
        [],
      );
    });

    it(`${name} imports no file of another package`, () => {
      const paths = globSync('**/*.{ts,tsx}', { cwd: folder, exclude: ['**/dist', '**/node_modules'] });
      assert.notEqual(paths.length, 0);
      for (const each of paths) {
        const path = `packages/${name}/${each}`;
        const text = readFileSync(join(root, path), 'utf8');
        assert.deepEqual(refused(path, text), [], path);
        if (name === 'simulator' && each.startsWith('src/'))
          assert.ok(!/\bimport\(/.test(text), `${path}: a simulator has nothing to load`);
      }
    });
  }
});

describe('an import', () => {
  it('leads out of its package by the name of a package only', () => {
    const server = "import { startRedis } from '../../../maintenance/test-servers/redis.ts';";
    const fixture = "import { A } from '../../../benchmarks/fidelity/measured-figures.fixture.ts';";
    const other = "import { start } from '../../../maintenance/start.ts';";
    const neighbour = "export * from '../../agents/src/a.ts';";
    const own = "import { a } from '../a.ts';";
    for (const [path, text, isRight] of [
      ['packages/servegym/src/b/c.ts', own, true],
      ['packages/servegym/src/made-up.ts', neighbour, false],
      ['packages/servegym/src/made-up.ts', server, false],
      ['packages/servegym/src/made-up.test.ts', server, true],
      ['packages/servegym/src/made-up.test.ts', other, false],
      ['packages/servegym/src/made-up.test.ts', fixture, true],
      ['packages/servegym/src/made-up.ts', fixture, false],
      ['packages/simulator/src/made-up.test.ts', fixture, false],
      ['packages/console/src/a.ts', "import type { X } from '@servegym/openenv/protocol';", true],
      ['packages/console/src/a.ts', "import { X } from '@servegym/openenv/protocol';", false],
      // It draws charts in pages too.
      ['packages/console/src/a.ts', "import { chartInPage } from '@servegym/operators/report';", true],
      ['packages/console/src/a.ts', "import { planFleet } from '@servegym/operators';", false],
    ] as const)
      assert.equal(refused(path, text).length, isRight ? 0 : 1, `${path}: ${text}`);
  });
});

describe('results', () => {
  it('do not hang on how an engine of JavaScript rounds `**`: portableMath has `pow`', () => {
    // Fits and training of what is recorded and shipped.
    const exempt = /\/(measure-server|fit-workload|kernels|coordinate-search)\b|\.(test|fixture)\.ts$/;
    for (const path of globSync('packages/{agents,environments,operators,simulator}/src/**/*.ts', {
      cwd: root,
    })) {
      if (exempt.test(path)) continue;
      const powers: string[] = [];
      const text = readFileSync(join(root, path), 'utf8');
      new Visitor({
        BinaryExpression({ operator, left, right, start, end }) {
          // Squares and powers of 2 are exact, or rounded once.
          const isSafe = [left, right].some((each) => each.type === 'Literal' && each.value === 2);
          if (operator === '**' && !isSafe) powers.push(text.slice(start, end));
        },
      }).visit(parseSync(path, text).program);
      assert.deepEqual(powers, [], path);
    }
  });
});

describe('biome.json', () => {
  const folder = temporaryFolder();
  const pure = 'packages/simulator/src/pure';
  const dependency = 'noUndeclaredDependencies';
  const environments = "from '@servegym/environments'";
  /** Rules that are broken by sources; none for those that are right. */
  const made: readonly (readonly [path: string, text: string, rule?: string])[] = [
    ...[
      `import { llmserve } ${environments};`,
      "import '@servegym/environments';",
      `import type { ServeAction } ${environments};`,
      `export * ${environments};`,
      `export type { ServeAction } ${environments};`,
      "export { llmserve } from '@servegym/environments/deep/path.ts';",
      "const { llmserve } = await import('@servegym/environments');",
      "import environments = require('@servegym/environments');",
    ].map((text, i) => [`packages/openenv/src/up-${i}.ts`, text, dependency] as const),
    ['packages/agents/src/down.ts', `export * ${environments};`],
    [
      'packages/openenv/src/text.ts',
      `// import ${environments};\nexport const a = "import ${environments}";`,
    ],
    ['packages/agents/src/undeclared.ts', "export * from 'fast-check';", dependency],
    ['packages/agents/src/declared.test.ts', "export * from 'fast-check';"],
    ['packages/jobs/src/builtin.ts', "export * from 'fs';", 'useNodejsImportProtocol'],
    [`${pure}-fs.ts`, "export * from 'node:fs';", 'noNodejsModules'],
    ...[
      'export const now = Date.now();',
      'export const now = new Date();',
      'export const now = Date();',
      'export const now = performance.now();',
      'setTimeout(() => {}, 1);',
      "console.log('arrived');",
      'globalThis.fetch;',
    ].map((text, i) => [`${pure}-global-${i}.ts`, text, 'noRestrictedGlobals'] as const),
    ...[
      'export const draw = Math.random();',
      'export const { random } = Math;',
      "export const draw = Math['random']();",
    ].map((text, i) => [`${pure}-chance-${i}.ts`, text, 'noJsRestrictedProperties'] as const),
    // portableMath has these.
    ...['agents', 'environments', 'operators', 'simulator'].map(
      (name) =>
        [`packages/${name}/src/e.ts`, 'export const e = Math.exp(1);', 'noJsRestrictedProperties'] as const,
    ),
    [
      `${pure}-row.ts`,
      'export const row = { Date: 1, performance: Math.max(1, 2) };\nexport const d = row.Date;',
    ],
    [`${pure}-own.ts`, 'export const a = (self: number[], { window } = { window: 2 }) => self[0] + window;'],
  ];

  it('finds what a package may not import, and what a simulator may not use', () => {
    for (const path of ['biome.json', 'package.json', ...globSync('packages/*/package.json', { cwd: root })])
      cpSync(join(root, path), join(folder, path), { recursive: true });
    for (const [path, text] of made) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    const options = ['lint', '--reporter=json', '--vcs-enabled=false', '--max-diagnostics=none', 'packages'];
    const biome = join(root, 'node_modules/.bin/biome');
    const { stdout } = spawnSync(biome, options, { cwd: folder, encoding: 'utf8' });
    const found = (JSON.parse(stdout).diagnostics as { category: string; location: { path: string } }[]).map(
      ({ category, location }) => `${location.path} ${category.split('/').at(-1)}`,
    );
    const rules = new Set(made.flatMap(([, , rule]) => rule ?? []));
    for (const [path, text, rule] of made)
      for (const each of rules)
        assert.equal(found.includes(`${path} ${each}`), each === rule, `${path}: ${text}: ${each}`);
  });
});
