// Puts together the folder that is pushed to a Hugging Face Space: the Space's own files, the template filled in, and the
// source of ServeGym from which its Dockerfile builds.
//
//   node deploy/spaces/build-space.ts llmserve /tmp/llmserve
//   openenv push /tmp/llmserve --repo-id you/llmserve
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { SPACE_SOURCE, SPACES, type SpaceName, writeSpace } from './write-space.ts';

/** Paths that the Dockerfile copies. */
const SOURCES = ['package.json', 'package-lock.json', 'tsconfig.json', 'packages', 'README.md', 'docs'];
const root = resolve(import.meta.dirname, '../..');

const [space, out] = process.argv.slice(2);
if (!space || !(space in SPACES) || !out) {
  console.error(`Expected one of ${Object.keys(SPACES).join(', ')}, and a folder to make`);
  process.exit(2);
}
if (existsSync(out) && readdirSync(out).length > 0) {
  console.error(`Expected a folder that is empty or is not there yet: ${out}`);
  process.exit(2);
}

writeSpace(space as SpaceName, out);
const tracked = execFileSync('git', ['ls-files', '-z', '--', ...SOURCES], { cwd: root, encoding: 'utf8' });
for (const path of tracked.split('\0')) {
  if (path === '' || /\.test\.tsx?$/.test(path) || !existsSync(join(root, path))) continue;
  const target = join(out, SPACE_SOURCE, path);
  mkdirSync(dirname(target), { recursive: true });
  cpSync(join(root, path), target);
}
console.log(`${out} is ready: openenv push ${out} --repo-id NAMESPACE/${space}`);
