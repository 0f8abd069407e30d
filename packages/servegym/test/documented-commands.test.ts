import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { type ServeProcess, startServe } from '../../../maintenance/test-servers/servegym.ts';
import { buildProgram } from '../src/cli/program.ts';
import { python } from './python-driver.ts';

const root = join(import.meta.dirname, '..', '..', '..');
/** Not the changelog, which tells of commands that are gone. */
const pages = globSync('{*,{docs,benchmarks}/*,{clients,deploy,packages}/**/*}.md', {
  cwd: root,
  exclude: (path) => path.includes('node_modules'),
}).filter((page) => page !== 'CHANGELOG.md');
const scripts = globSync('benchmarks/**/*.sh', { cwd: root });

const textOf = (page: string) => readFileSync(join(root, page), 'utf8');

/** The words behind each `servegym` of a page that begins a command, in code blocks and between backticks. */
function invocations(page: string): string[][] {
  const text = textOf(page).replace(/\\\n\s*/g, ' ');
  const lines = [
    ...[...text.matchAll(/^```(?:sh|text)?\n(.*?)^```/gms)].flatMap(([, block]) => block!.split('\n')),
    ...[...text.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!),
  ];
  return lines
    .map((line) => /^(?:[A-Z_]+=\S+ )*(?:npx )?servegym ([a-z-][^#]*)/.exec(line.trim())?.[1])
    .filter((words) => words !== undefined)
    .map(wordsOf);
}

/** The same of a shell script, where `servegym` and `step` may be functions that take a limit in seconds first. */
function scriptInvocations(script: string): string[][] {
  const lines = textOf(script)
    .replace(/\\\n\s*/g, ' ')
    .split('\n');
  return lines
    .map((line) => /^.*\b(?:servegym|step) (?:\d+ |\$\(\(.*?\)\) )?([a-z-][^#]*)/.exec(line)?.[1])
    .filter((words) => words !== undefined)
    .map(wordsOf);
}

function wordsOf(command: string): string[] {
  return command
    .replace(/'[^']*'|"[^"]*"/g, 'quoted')
    .trim()
    .split(/\s+/);
}

const program = await buildProgram('all');

/** The command that the words name, and the words that are left. */
function commandOf(words: readonly string[]): { command: Command; rest: readonly string[] } {
  let command = program;
  let rest = words;
  for (;;) {
    const below = command.commands.find((each) => each.name() === rest[0]);
    if (below === undefined) return { command, rest };
    command = below;
    rest = rest.slice(1);
  }
}

describe('the documents', () => {
  it('name only commands and options that there are', () => {
    let seen = 0;
    const all = [
      ...pages.map((page) => [page, invocations(page)] as const),
      ...scripts.map((script) => [script, scriptInvocations(script)] as const),
    ];
    for (const [page, found] of all) {
      for (const words of found) {
        const { command, rest } = commandOf(words);
        const said = `${page}: servegym ${words.join(' ')}`;
        assert.ok(rest.length < words.length || words[0].startsWith('-'), `${said}: no such command`);
        for (const word of rest.filter((each) => each.startsWith('--'))) {
          const name = word.split('=')[0];
          const isKnown = name === '--help' || command.options.some(({ long }) => long === name);
          assert.ok(isKnown, `${said}: no option ${name}`);
        }
        seen++;
      }
    }
    assert.ok(seen > 50, `${seen} commands`);
  });

  it('lead to files and headings that there are', () => {
    const anchorsOf = (path: string) =>
      [...textOf(path).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
        heading!
          .toLowerCase()
          .replace(/[^\p{L}\p{N}\- ]/gu, '')
          .replaceAll(' ', '-'),
      );
    let seen = 0;
    for (const page of pages) {
      for (const [, link] of textOf(page).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)) {
        const [path, anchor] = link!.split('#') as [string, string | undefined];
        const target = path === '' ? page : join(dirname(page), path);
        assert.ok(existsSync(join(root, target)), `${page}: ${link} is not there`);
        if (anchor !== undefined && target.endsWith('.md'))
          assert.ok(anchorsOf(target).includes(anchor), `${page}: ${link} has no such heading`);
        seen++;
      }
    }
    assert.ok(seen > 50, `${seen} links`);
  });
});

const packageFolder = dirname(import.meta.dirname);
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const packageReadme = readFileSync(join(packageFolder, 'README.md'), 'utf8');
const clientReadme = readFileSync(join(root, 'clients', 'python', 'README.md'), 'utf8');

const main = join(packageFolder, 'src', 'main.ts');

/** The code blocks of a page in a language, as they are written. */
function snippets(language: string, page = readme): string[] {
  return [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .filter((match) => match[1] === language)
    .map((match) => match[2]);
}

/** Runs a program on `input` and returns what it writes. Fails when the program does. */
async function runOn(input: string, command: string, args: readonly string[], cwd: string): Promise<string> {
  const child = spawn(command, args, { cwd, stdio: ['pipe', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  child.stdin.end(input);
  const [code] = await once(child, 'close');
  assert.equal(code, 0, `${stdout}${stderr}`);
  return stdout;
}

describe('the page of each package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-pages-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const packages = join(root, 'packages');
  /** What a program writes, of those that write something. */
  const output: Record<string, RegExp> = {
    profiles: /^measured \{.*\} \d+\n$/s,
    servegym: /^\d+ figures after a reset\n$/,
    simulator: /p50: \d+/,
  };
  const withPage = readdirSync(packages).filter((name) => existsSync(join(packages, name, 'README.md')));

  for (const name of withPage) {
    const page = readFileSync(join(packages, name, 'README.md'), 'utf8');
    const program = snippets('ts', page).join('\n');
    if (program === '') continue;
    it(`has code that runs: ${name}`, async () => {
      // What a page says is in files of one's own, and the ports, which may be taken.
      const job = join(folder, 'square.js');
      writeFileSync(job, snippets('js', page).join('\n'));
      const code = program
        .replaceAll('./environment.ts', './examples/guess/environment.ts')
        .replaceAll("new URL('./square.js', import.meta.url)", `new URL('${pathToFileURL(job)}')`)
        .replaceAll('sessions.db', join(folder, 'sessions.db'))
        .replaceAll("'http://localhost:8000'", 'url')
        .replaceAll(/port: \d+/g, 'port: 0');
      const args = ['--input-type=module-typescript', '-'];
      const told = await runOn(`${code}\nprocess.exit();`, process.execPath, args, join(packages, name));
      assert.match(told, output[name] ?? /^$/);
    });
  }
});

describe('the README', () => {
  let server: ServeProcess;
  before(async () => {
    server = await startServe();
  });
  after(() => server.stop());

  const atServer = (snippet: string) => snippet.replaceAll('http://localhost:7860', server.url);

  it('begins with the commands of a checkout, before any that needs a published package', () => {
    assert.match(readme, /```sh\nnpm start +#.*\nnpm test +#/);
    assert.ok(readme.indexOf('npm test ') < readme.search(/npx servegym|pip install/));
  });

  it('has a Python snippet that plays an episode', async () => {
    const [snippet, ...more] = snippets('python');
    assert.equal(more.length, 0);
    const output = await runOn(atServer(snippet!), python, ['-'], root);
    const told = 'score 0.68, 74% of 7457 requests within their SLO\n';
    assert.equal(output, told);
    assert.ok(snippet!.endsWith(`# ${told}`));
  });

  it('has a TypeScript snippet that plays an episode and has it graded', async () => {
    const [snippet, ...more] = snippets('ts');
    assert.equal(more.length, 0);
    // Node 22 cannot parse it.
    assert.doesNotMatch(snippet!, /\busing\b/);
    const args = ['--input-type=module-typescript', '-'];
    const output = await runOn(atServer(snippet!), process.execPath, args, packageFolder);
    assert.match(
      output,
      /^score 0\.68, 74% of 7457 requests within their SLO\nBetter than the default .*More than the best configuration that never changes/,
    );
  });

  it('leads to the Python client, whose first snippet comes near the planner', async () => {
    const [snippet] = snippets('python', clientReadme);
    const score = Number(
      await runOn(atServer(snippet!), python, ['-'], join(root, 'clients', 'python', 'src')),
    );
    assert.ok(score > 0.85 && score < 0.95, `${score}`);
  });

  it('leads to the Python client, whose snippets for Gymnasium and learners run', async () => {
    // PyTorch is too large for the tests.
    const ofLearners = snippets('python', clientReadme)
      .slice(1)
      .filter((code) => !/stable_baselines3/.test(code));
    assert.equal(ofLearners.length, 2);
    const program = `${ofLearners.join('\n')}\nprint(env.spec.id, envs.num_envs, observations.shape[0])`;
    const output = await runOn(program, python, ['-'], join(root, 'clients', 'python', 'src'));
    assert.equal(output, 'ServeGym/LLMServe-v1 32 32\n');
  });

  it('of the package begins with a command line that starts the server', async () => {
    assert.match(packageReadme, /^npx servegym +#/m);
    const child = spawn(process.execPath, [main], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, PORT: '0', HOST: '127.0.0.1' },
    });
    let stdout = '';
    for await (const chunk of child.stdout) {
      stdout += chunk;
      if (stdout.includes('ServeGym is ready')) child.kill();
    }
    assert.match(stdout, /ServeGym is ready/);
  });

  it('gives the figures of the pages that it links to', () => {
    const rows = [...readme.matchAll(/^\| .* \| (.*) \| \[.*\]\(([^)#]+)(#\S+)?\) \|$/gm)];
    assert.equal(rows.length, 6);
    for (const [, result, page] of rows) {
      const text = readFileSync(join(root, page!), 'utf8');
      for (const [figure] of result!.matchAll(/\d[\d.,]*\d/g))
        assert.ok(text.includes(figure), `${page}: ${figure}`);
    }
  });

  it('of the package has command lines that work', async () => {
    const lines = [...snippets('sh', packageReadme), ...snippets('sh')].join('\n');
    // A server would not come to an end; the tests of `serve` start it.
    const commands = lines.replace(/^(npx servegym( serve .*)? *(#.*)?|npm .*|pip .*)$/gm, '');
    assert.equal((commands.match(/^npx servegym /gm) ?? []).length, 9);
    const asInstalled = `set -eu\nnpx() { shift; [ "$1" != plan ] || set -- "$@" --requests 400 --gpus h100; '${process.execPath}' '${main}' "$@"; }\n`;
    const folder = mkdtempSync(join(tmpdir(), 'servegym-readme-'));
    const rows = Array.from({ length: 400 }, (_, i) => `${i / 2},${300 + 7 * i},${50 + (i % 100)}`);
    writeFileSync(join(folder, 'log.csv'), `ts,prompt,completion\n${rows.join('\n')}`);
    try {
      const output = await runOn(asInstalled + commands, 'bash', ['-s'], folder);
      assert.match(output, /TTFT/);
      assert.match(output, /a100-40gb-llama-3-8b/);
      assert.match(output, /adversarial_multitenant/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('names npm scripts and files that there are', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    for (const [, script] of readme.matchAll(/^npm (\w+)/gm)) assert.ok(scripts[script!], script);
    const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map((match) => match[1]);
    assert.notEqual(links.length, 0);
    for (const link of links) readFileSync(join(root, link.endsWith('/') ? `${link}README.md` : link));
  });
});
