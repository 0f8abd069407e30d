import { isBuiltin } from 'node:module';
import { posix } from 'node:path';
import type { NameUse, SourceFile } from './source-file.ts';

/** Rules for the imports of a package. A package imports only packages listed below it. */
interface PackageRules {
  readonly mayImport: readonly string[];
  /** Packages above it that its tests may import: development dependencies. */
  readonly testsMayImport?: readonly string[];
  /** Specifiers of which it may import types only. */
  readonly mayImportTypesOf?: readonly string[];
  /** Pure computation: no I/O, no clock, no randomness but what is passed in. */
  readonly isPure?: boolean;
  /** A build carries all that it needs, so that its dependencies are those of development. */
  readonly isBundled?: boolean;
}

export const LAYOUT: Readonly<Record<string, PackageRules>> = {
  servegym: {
    mayImport: [
      '@servegym/agents',
      '@servegym/endpoint',
      '@servegym/environments',
      '@servegym/jobs',
      '@servegym/openenv',
      '@servegym/operators',
      '@servegym/profiles',
      '@servegym/simulator',
    ],
  },
  '@servegym/operators': { mayImport: ['@servegym/jobs', '@servegym/profiles', '@servegym/simulator'] },
  '@servegym/endpoint': { mayImport: ['@servegym/profiles', '@servegym/simulator'] },
  '@servegym/agents': {
    mayImport: [
      '@servegym/environments',
      '@servegym/jobs',
      '@servegym/openenv',
      '@servegym/profiles',
      '@servegym/simulator',
    ],
  },
  '@servegym/environments': { mayImport: ['@servegym/openenv', '@servegym/profiles', '@servegym/simulator'] },
  '@servegym/console': {
    mayImport: [],
    mayImportTypesOf: ['@servegym/openenv/protocol', '@servegym/operators'],
    isBundled: true,
  },
  '@servegym/jobs': { mayImport: [] },
  '@servegym/openenv': { mayImport: [] },
  '@servegym/profiles': { mayImport: ['@servegym/simulator'] },
  '@servegym/simulator': { mayImport: [], testsMayImport: ['@servegym/profiles'], isPure: true },
};

/** The part of a `package.json` that the rules look at. */
export interface Manifest {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** Folder of the servers that tests of any package may start, from the package's folder. */
const TEST_SERVERS = '../../maintenance/test-servers/';
/** Data of the tests of another package, or of the benchmarks, from the package's folder. */
const FIXTURE = /^\.\.\/(\w+|\.\.\/benchmarks)\/.*\.fixture\.ts$/;

/** Globals through which a program meets the world, the clock or chance. `Math` and `Date` are looked at apart. */
const IMPURE_GLOBALS = new Set(
  (
    'Buffer Bun Deno EventSource Temporal WebSocket Worker XMLHttpRequest clearInterval clearTimeout console ' +
    'crypto document eval fetch global globalThis localStorage navigator performance process queueMicrotask require ' +
    'self setImmediate setInterval setTimeout window'
  ).split(' '),
);

/**
 * The broken rules of one source, each as `path:line: what`.
 *
 * @param path from the package's folder, with `/`
 * @param workspace the manifest at the root; its development dependencies are for tests
 */
export function brokenRules(path: string, source: SourceFile, own: Manifest, workspace: Manifest): string[] {
  const rules = LAYOUT[own.name];
  if (!rules) return [`${own.name} is not in LAYOUT: add what it may import`];
  const isShipped = path.startsWith('src/') && !/\.(test|fixture)\.tsx?$|\/fixtures\//.test(path);
  const mayUseDevelopment = !isShipped || rules.isBundled === true;
  const broken: string[] = [];

  for (const { specifier, isTypeOnly, offset } of source.requests) {
    const complain = (what: string) => broken.push(`${path}:${source.lineAt(offset)}: ${what}`);
    if (specifier === undefined) {
      // Worker threads load what they are told to; a simulator has nothing to load.
      if (rules.isPure) complain('imports a module whose name is computed');
    } else if (isBuiltin(specifier)) {
      if (!specifier.startsWith('node:')) complain(`imports \`${specifier}\`; write \`node:${specifier}\``);
      if (rules.isPure && isShipped)
        complain(`imports \`${specifier}\`, but ${own.name} is pure computation`);
    } else if (specifier.startsWith('.')) {
      const target = posix.join(posix.dirname(path), specifier);
      const fixtureOf = FIXTURE.exec(target)?.[1];
      const isForTests =
        target.startsWith(TEST_SERVERS) ||
        (fixtureOf === '../benchmarks' && own.name === 'servegym') ||
        rules.mayImport.includes(`@servegym/${fixtureOf}`);
      if (target.startsWith('..') && (isShipped || !isForTests))
        complain(`imports \`${specifier}\`, outside its package; use the package's name`);
      if (!posix.extname(specifier)) complain(`imports \`${specifier}\` without its extension`);
    } else {
      const name = packageOf(specifier);
      const mayImport =
        rules.mayImport.includes(name) ||
        (!isShipped && rules.testsMayImport?.includes(name) === true) ||
        (isTypeOnly && rules.mayImportTypesOf?.includes(specifier) === true);
      if (name in LAYOUT && name !== own.name && !mayImport)
        complain(`imports \`${specifier}\`, which is above it`);
      const isDeclared =
        name === own.name ||
        name in (own.dependencies ?? {}) ||
        name in (own.peerDependencies ?? {}) ||
        (mayUseDevelopment &&
          (name in (own.devDependencies ?? {}) || name in (workspace.devDependencies ?? {})));
      if (!isDeclared) complain(`imports \`${specifier}\`, which its package.json does not declare`);
    }
  }
  if (rules.isPure && isShipped) {
    for (const use of source.names) {
      if (isImpure(use))
        broken.push(
          `${path}:${source.lineAt(use.offset)}: uses \`${use.name}\`, but ${own.name} is pure computation`,
        );
    }
  }
  return broken;
}

function isImpure({ name, property, constructedWith }: NameUse): boolean {
  if (name === 'Math') return property === undefined || property === 'random';
  // Calendar arithmetic is pure as long as neither the clock nor the time zone comes in.
  if (name === 'Date') return property !== 'UTC' && constructedWith !== 1;
  return IMPURE_GLOBALS.has(name);
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}
