import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';

const source = join(import.meta.dirname, '..', 'src');
/** Says `listening` once the process listens for Ctrl-C and SIGTERM, the latter of the two. */
const SAY_LISTENING = `data:text/javascript,${encodeURIComponent(
  "process.on('newListener', (name) => name === 'SIGTERM' && process.nextTick(() => process.stderr.write('listening\\n')))",
)}`;

/** Has progress written to a pipe as to a terminal. */
const SHOW_PROGRESS = 'data:text/javascript,process.stderr.isTTY = true';

/**
 * Runs a program, sends it the signal as soon as it listens for signals, or when its progress shows what `at` matches,
 * and waits for its end. It may say something before.
 */
async function interrupt(signal: NodeJS.Signals, args: readonly string[], at?: RegExp) {
  const preload = at === undefined ? SAY_LISTENING : SHOW_PROGRESS;
  const child = spawn(process.execPath, ['--import', preload, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let isSent = false;
  child.stderr.setEncoding('utf8').on('data', (said: string) => {
    // A second signal would end it at once.
    if (isSent || !(at ?? /listening/).test(said)) return;
    isSent = child.kill(signal);
  });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  return { code, stdout, stderr: stderr.replace(/^listening\n/gm, '') };
}

describe('a command that is interrupted', () => {
  const folder = temporaryFolder();

  for (const [command, first, second, ...args] of [
    [
      ...(['tune', /neighbours of the best, round 1/, /the finalists/] as const),
      ...[
        'bursty_workload',
        '--profile',
        'a100-40gb-llama-3-8b',
        '--requests',
        '400',
        '--configurations',
        '16',
      ],
    ],
    [
      ...(['plan', /the best of each kind/, /1 of \d+ kinds/] as const),
      ...['chat@2/s,0.2h', '--model', 'llama-3-8b', '--requests', '400', '--gpus', 'a100-40gb'],
    ],
  ] as const) {
    it(`goes on (${command} --resume) from what was finished, killed and interrupted, to the same answer`, async () => {
      const record = join(folder, `${command}.jsonl`);
      const asked = [join(source, 'main.ts'), command, ...args, '--threads', '2'];
      const kept = [...asked, '--resume', record];
      const size = () => readFileSync(record, 'utf8').split('\n').length;
      const killed = await interrupt('SIGKILL', kept, first);
      assert.equal(killed.code, null);
      const afterKill = size();
      assert.ok(afterKill > 2);
      const stopped = await interrupt('SIGINT', kept, second);
      assert.equal(stopped.code, 130, stopped.stderr);
      assert.ok(size() > afterKill);
      const answer = async (...more: string[]) => {
        const child = spawn(process.execPath, [...asked, '--json', ...more], {
          stdio: ['ignore', 'pipe', 'ignore'],
        });
        const { wall_s: _, ...found } = JSON.parse(await text(child.stdout));
        return found;
      };
      const resumed = await answer('--resume', record);
      assert.deepEqual(resumed, await answer('--threads', '1'));
      // All is known now: nothing is added.
      const end = size();
      assert.deepEqual(await answer('--resume', record), resumed);
      assert.equal(size(), end);
      rmSync(record);
    });
  }

  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    // Both signals take one way through every command.
    const some = <Command>(commands: readonly Command[]) => commands.slice(0, signal === 'SIGINT' ? 3 : 1);
    for (const [command, ...args] of some([
      ['evaluate', 'mpc', 'heuristic', '--task', 'bursty_workload'],
      ['tune', 'bursty_workload', '--profile', 'a100-40gb-llama-3-8b', '--report', 'tune.html'],
      ['train', '--task', 'static_workload', '--seeds', '0..1', '--out', 'runs'],
    ] as const)) {
      it(`ends with ${exitCode} (${command}) and leaves no broken file`, async () => {
        const inFolder = args.map((word) => (/^(tune\.html|runs)$/.test(word) ? join(folder, word) : word));
        const ending = await interrupt(signal, [join(source, 'main.ts'), command, ...inFolder]);
        assert.equal(ending.code, exitCode, ending.stderr);
        assert.equal(ending.stdout, '');
        assert.match(ending.stderr, /^error: interrupted.*\n$/m);
        assert.deepEqual(
          readdirSync(folder, { recursive: true }).filter((name) => name !== 'runs'),
          [],
        );
      });
    }

    for (const [command, at, text, ...args] of some([
      [
        'tune',
        /neighbours of the best, round 1/,
        /^a100-40gb-llama-3-8b, interrupted\. Best so far, .*\n\nvLLM:\n {2}vllm serve /m,
        ...['bursty_workload', '--profile', 'a100-40gb-llama-3-8b', '--requests', '400'],
        ...['--configurations', '16'],
      ],
      [
        'plan',
        /1 of \d+ kinds/,
        /^Interrupted after \d+ of \d+ kinds of engines\. Plans so far:\n\nCheapest: .*\nvLLM:\n {2}vllm serve .*\n1\*/ms,
        ...['chat@2/s,0.2h', '--model', 'llama-3-8b'],
        ...['--requests', '400', '--gpus', 'a100-40gb,h100-80gb', '--max-engines', '4'],
      ],
    ] as const)) {
      it(`ends with ${exitCode} (${command}) and prints what it has found so far`, async () => {
        const ending = await interrupt(signal, [join(source, 'main.ts'), command, ...args], at);
        assert.equal(ending.code, exitCode, ending.stderr);
        assert.match(ending.stdout, text);
        assert.match(ending.stderr, /error: interrupted\n$/);
      });
    }

    it(`ends with ${exitCode} while it writes a file, which is not there afterwards`, async () => {
      const module = join(source, 'cli', 'files.ts');
      const program = `import { writeOutputFile } from ${JSON.stringify(module)};
        function* endless() { for (;;) yield 'x'.repeat(10_000); }
        await writeOutputFile(${JSON.stringify(join(folder, 'out.csv'))}, endless());`;
      const ending = await interrupt(signal, ['--input-type=module-typescript', '--eval', program]);
      assert.deepEqual([ending.code, ending.stderr], [exitCode, '']);
      assert.deepEqual(
        readdirSync(folder).filter((name) => name !== 'runs'),
        [],
      );
    });
  }
});
