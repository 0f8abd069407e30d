import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import getPort from 'get-port';

const root = dirname(import.meta.dirname);
const python =
  process.env.SERVEGYM_PYTHON ?? assert.fail('SERVEGYM_PYTHON is not set. Run the tests with `npm test`.');

/** The packages as if they were installed: this checkout's. `node serve.ts` goes on until the page is done. */
const INSTALLED = `set -eu
pip() { [ "$*" = 'install -e clients/python' ] || [ "$*" = 'install openenv' ]; }
python() { PYTHONPATH='${join(root, 'clients/python/src')}:'"\${PYTHONPATH-}" '${python}' "$@"; }
openenv() { '${join(dirname(python), 'openenv')}' "$@"; }
npm() { ln -sfn '${join(root, 'node_modules')}' node_modules; echo '{"type": "module"}' > package.json; }
node() {
  if [ "$1" = serve.ts ]; then
    '${process.execPath}' serve.ts > serve.log 2>&1 & echo $! > serve.pid
    until [ -s serve.log ]; do sleep 0.1; done
    cat serve.log
  else
    '${process.execPath}' "$@"
  fi
}
npx() { [ "$1" = servegym ]; shift; '${process.execPath}' '${join(root, 'packages/servegym/src/main.ts')}' "$@"; }
`;

interface Block {
  readonly language: string;
  /** File that the block is, as in ```python [train.py]; `undefined` for others. */
  readonly file: string | undefined;
  readonly text: string;
}

/** Blocks of code of a page in their order. */
function blocksOf(page: string): Block[] {
  return [...page.matchAll(/^```(\w+)(?: \[(\S+)\])?\n(.*?)^```$/gms)].map(([, language, file, text]) => ({
    language: language!,
    file,
    text: text!,
  }));
}

/** Writes the files of a page, runs its commands, and finds the output that it shows. Gives the output of each. */
async function follow(page: string): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-tutorial-'));
  const outputs: string[] = [];
  try {
    for (const block of blocksOf(page)) {
      if (block.file) writeFileSync(join(folder, block.file), block.text);
      else if (block.language === 'sh') outputs.push(await runIn(folder, block.text));
      else if (block.language === 'text') assertShows(outputs.at(-1) ?? '', block.text);
      else assert.fail(`A block of ${block.language} without a file name:\n${block.text}`);
    }
  } finally {
    const server = join(folder, 'serve.pid');
    if (existsSync(server)) process.kill(Number(readFileSync(server, 'utf8')));
    rmSync(folder, { recursive: true });
  }
  return outputs;
}

async function runIn(folder: string, commands: string): Promise<string> {
  const env = { ...process.env, SERVEGYM_STORE: 'memory' };
  const child = spawn('bash', ['-c', INSTALLED + commands], { cwd: folder, env });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  assert.equal(code, 0, `${commands}${stdout}${stderr}`);
  return stdout + stderr;
}

/** The lines that a page shows are in the output, in this order, with others between them; … is any text. */
function assertShows(output: string, shown: string): void {
  const lines = output.split('\n');
  for (const wanted of shown.trimEnd().split('\n')) {
    const at = lines.findIndex((line) => shows(line, wanted.split('…')));
    assert.notEqual(at, -1, `${wanted}\nis not in, or not in this order:\n${output}`);
    lines.splice(0, at + 1);
  }
}

function shows(line: string, parts: readonly string[]): boolean {
  let from = 0;
  return parts.every((part) => {
    const at = line.indexOf(part, from);
    from = at + part.length;
    return at >= 0;
  });
}

const tutorial = (name: string) => readFileSync(join(root, 'docs', `${name}.md`), 'utf8');

describe('a tutorial', () => {
  it('trains an agent and grades it', async () => {
    // What follows needs PyTorch and Stable-Baselines3, which the tests do not install.
    const [page] = tutorial('train-an-agent').split('\n## Use Stable-Baselines3\n');
    const [, training, grading] = await follow(page!);
    const returns = [...training!.matchAll(/mean return ([\d.]+)/g)].map(([, value]) => Number(value));
    assert.ok(returns.at(-1)! > returns[0]!, training);
    const score = Number(/mean score ([\d.]+)/.exec(grading!)?.[1]);
    // The default scores 0.20, and the best fixed setting 0.50.
    assert.ok(score > 0.5, grading);
  });

  it('finds settings for a trace', async () => {
    assert.equal((await follow(tutorial('gpus-for-my-trace'))).length, 3);
  });

  it('serves an environment of one’s own, and plays it from TypeScript and Python', async () => {
    const [page] = tutorial('your-own-environment').split('\n## Tools of your own\n');
    const port = await getPort({ host: '127.0.0.1' });
    assert.equal((await follow(page!.replaceAll('8000', String(port)))).length, 5);
  });
});
