// `npm run build:wheel`: builds the wheel of clients/python into `dist/wheel`, with the server that `npm run build` has
// packed inside, so that `pip install` brings all that Python users need. `--tarballs` and `--out` name other folders.
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './setup/commands.mjs';
import { ensurePython } from './setup/programs.mjs';

/** Files that only a compiler, a debugger or a person reads. */
const LEFT_OUT = /\.(map|[cm]?ts|md|markdown)$/i;
const LICENCE = /^(licen[cs]e|copying|notice)/i;
const NATIVE = /\.(node|so|dylib|dll|exe)$/i;

const { values } = parseArgs({
  options: {
    tarballs: { type: 'string', default: join(root, 'dist', 'tarballs') },
    out: { type: 'string', default: join(root, 'dist', 'wheel') },
  },
});
const tarballs = resolve(values.tarballs);
const out = resolve(values.out);

const python = await ensurePython();
const staging = mkdtempSync(join(tmpdir(), 'servegym-wheel-'));
try {
  cpSync(join(root, 'clients', 'python'), staging, {
    recursive: true,
    filter: (path) => !/^(__pycache__|tests|build)$|\.egg-info$/.test(basename(path)),
  });
  cpSync(join(root, 'LICENSE'), join(staging, 'LICENSE'));
  const version = commonVersion(join(staging, 'pyproject.toml'));
  const server = join(staging, 'src', 'servegym', '_server');
  installServer(server);
  prune(join(server, 'node_modules'));
  execFileSync(python, ['-m', 'pip', 'wheel', '--quiet', '--no-deps', '--wheel-dir', out, staging], {
    stdio: 'inherit',
  });
  const wheel = join(out, `servegym-${version}-py3-none-any.whl`);
  console.log(`Built ${relative(process.cwd(), wheel)}, ${(statSync(wheel).size / 1e6).toFixed(1)} MB`);
} finally {
  rmSync(staging, { recursive: true, force: true });
}

/** The version of the wheel and of the server in it. */
function commonVersion(pyproject) {
  const { version } = JSON.parse(readFileSync(join(root, 'packages', 'servegym', 'package.json'), 'utf8'));
  const found = /^version = "(.*)"$/m.exec(readFileSync(pyproject, 'utf8'))?.[1];
  if (found !== version)
    throw new Error(
      `Expected the version ${version} of packages/servegym in clients/python/pyproject.toml, got ${found}. Set it there.`,
    );
  return version;
}

/** Installs the packed packages with the dependencies that the lock file names, and nothing native. */
function installServer(folder) {
  mkdirSync(folder, { recursive: true });
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const locked = Object.entries(packages).filter(
    ([path, { link, dev, optional }]) =>
      /^node_modules\/[^/]+(\/[^/]+)?$/.test(path) && !link && !dev && !optional,
  );
  const overrides = Object.fromEntries(
    locked.map(([path, { version }]) => [path.slice('node_modules/'.length), version]),
  );
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, overrides }));
  const packed = readdirSync(tarballs).map((name) => join(tarballs, name));
  const options = '--omit=dev --omit=optional --ignore-scripts --no-package-lock --no-audit --no-fund';
  const args = ['install', '--silent', ...options.split(' '), ...packed];
  execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  rmSync(join(folder, 'package.json'));
}

/** Removes what the server does not read. Throws where a licence would be missing, or a file fits one platform only. */
function prune(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  for (const { name, parentPath } of files) {
    const path = join(parentPath, name);
    if (NATIVE.test(name))
      throw new Error(`${relative(folder, path)} runs on one platform only: leave it out`);
    // What stands beside our own modules is read at run time.
    const isOurs = /(@servegym\/\w+|servegym)\/lib\//.test(path) && name.endsWith('.md');
    if (LEFT_OUT.test(name) && !LICENCE.test(name) && !isOurs) rmSync(path);
  }
  const isPackage = (path) => /[\\/]node_modules[\\/](@[^\\/]+[\\/])?[^@\\/][^\\/]*$/.test(path);
  const manifests = files.filter(({ name, parentPath }) => name === 'package.json' && isPackage(parentPath));
  for (const { parentPath } of manifests)
    if (!readdirSync(parentPath).some((name) => LICENCE.test(name)))
      throw new Error(
        `${relative(folder, parentPath)} has no licence file: keep the one that its text stands in`,
      );
}
