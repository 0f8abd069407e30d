// Seconds from `npm start` to the page, in a checkout that is already set up, or with --fresh in a new clone of it,
// where the packages are installed and the console is built first.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import getPort from 'get-port';

const POLL_EVERY_MS = 10;

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '5' },
    fresh: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const checkout = fileURLToPath(new URL('..', import.meta.url));

async function isServed(page: string): Promise<boolean> {
  try {
    return (await fetch(page)).ok;
  } catch {
    return false;
  }
}

async function secondsToPage(folder: string): Promise<number> {
  const port = await getPort({ host: '127.0.0.1' });
  const page = `http://127.0.0.1:${port}/web/`;
  const startedAt = performance.now();
  const npm = spawn('npm', ['start'], {
    cwd: folder,
    env: { ...process.env, PORT: String(port), HOST: '127.0.0.1' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(npm, 'exit');
  while (!(await isServed(page))) {
    if (npm.exitCode !== null) throw new Error(`npm start ended with exit code ${npm.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_EVERY_MS));
  }
  const seconds = (performance.now() - startedAt) / 1000;
  npm.kill();
  await ended;
  return seconds;
}

async function secondsInFreshClone(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-'));
  try {
    spawnSync('git', ['clone', '--quiet', checkout, folder], { stdio: 'inherit' });
    return await secondsToPage(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const measured: number[] = [];
for (let run = 0; run < Number(values.runs); run++) {
  measured.push(await (values.fresh ? secondsInFreshClone() : secondsToPage(checkout)));
}
const sorted = measured.toSorted((a, b) => a - b);
const summary = {
  runs: sorted.length,
  min_s: Number(sorted[0].toFixed(2)),
  median_s: Number(sorted[Math.floor(sorted.length / 2)].toFixed(2)),
  max_s: Number(sorted.at(-1)!.toFixed(2)),
};
console.log(
  values.json
    ? JSON.stringify(summary)
    : `${summary.median_s} s (${summary.min_s} to ${summary.max_s}, ${summary.runs} runs)`,
);
