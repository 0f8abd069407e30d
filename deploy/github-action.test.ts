import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { RandomStream } from '@servegym/simulator';
import { parse } from 'yaml';
import { temporaryFolder } from '../maintenance/test-servers/temporary-folder.ts';

const folder = temporaryFolder();
const trace = join(folder, 'trace.csv');
const line = (flags = '') => `vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 128 ${flags}`;

before(() => {
  const random = new RandomStream(5, 'trace');
  let at = 0;
  const rows = Array.from({ length: 800 }, () => {
    at += random.exponential(0.125);
    return `${at.toFixed(4)},${random.integer(50, 1500)},${random.integer(20, 300)}`;
  });
  writeFileSync(trace, `arrival,input,output\n${rows.join('\n')}\n`);
});

describe('the GitHub action', () => {
  const path = join(import.meta.dirname, 'github-action/action.yml');
  const { steps } = parse(readFileSync(path, 'utf8')).runs as {
    steps: { id?: string; run: string; env: object }[];
  };

  /** Runs the steps as GitHub does: each a bash script, with outputs in a file. */
  async function act(baseline: string, candidate: string, earlier?: number) {
    const home = join(folder, `act-${candidate.length}`);
    const bin = join(home, 'bin');
    mkdirSync(bin, { recursive: true });
    const main = join(import.meta.dirname, '../packages/servegym/src/main.ts');
    const tool = (name: string, script: string) => {
      writeFileSync(join(bin, name), `#!/usr/bin/env bash\n${script}\n`);
      chmodSync(join(bin, name), 0o755);
    };
    tool('npx', `shift 2; exec "${process.execPath}" "${main}" "$@"`);
    // Lists the comments that an earlier run has left, if any; notes what is sent.
    tool(
      'gh',
      `case "$*" in *--paginate*) cat "${home}/earlier" 2>/dev/null || true ;; *) printf '%s\\n' "$@" > "${home}/gh"; cat "$RUNNER_TEMP/comment.md" >> "${home}/gh" ;; esac`,
    );
    if (earlier !== undefined) writeFileSync(join(home, 'earlier'), `${earlier}\n`);
    const [before_, after_] = [join(home, 'before.sh'), join(home, 'after.sh')];
    writeFileSync(before_, baseline);
    writeFileSync(after_, candidate);
    const output = join(home, 'output');
    rmSync(output, { force: true });
    writeFileSync(output, '');
    const env: Record<string, string> = {
      ...(process.env as Record<string, string>),
      ...{ PATH: `${bin}:${process.env.PATH}`, RUNNER_TEMP: home, GITHUB_OUTPUT: output },
      ...{ GITHUB_STEP_SUMMARY: join(home, 'summary'), BASELINE: before_, CANDIDATE: after_, TRACE: trace },
      ...{
        SLO: 'ttft_p99=1s,tpot_p99=40ms',
        GPU: 'h100',
        ARGUMENTS: '--requests 800',
        VERSION: '1',
        NUMBER: '7',
        COMMENTS: 'repos/o/r/issues',
      },
    };
    const codes: number[] = [];
    for (const { run } of steps) {
      env.STATUS = /status=(\d)/.exec(readFileSync(output, 'utf8'))?.[1] ?? '';
      const script = join(home, 'step.sh');
      writeFileSync(script, run);
      const done = promisify(execFile)('bash', ['--noprofile', '--norc', '-eo', 'pipefail', script], { env });
      codes.push(
        await done.then(
          () => 0,
          (error) => error.code,
        ),
      );
    }
    return {
      codes,
      comment: readFileSync(join(home, 'gh'), 'utf8'),
      summary: readFileSync(join(home, 'summary'), 'utf8'),
    };
  }

  it('comments the table, and fails where a bound breaks', async () => {
    const { codes, comment, summary } = await act(line(), line('--max-num-seqs 4'));
    assert.deepEqual(codes, [0, 0, 0, 1]);
    assert.match(comment, /^api\n--silent\nrepos\/o\/r\/issues\/7\/comments\n-F\nbody=@/);
    assert.match(comment, /<!-- servegym diff -->\n\*\*breaks: TTFT p99/);
    assert.match(summary, /breaks: TTFT p99/);
  });

  it('passes where all holds, and edits the comment of the run before', async () => {
    const { codes, comment, summary } = await act(line(), line('--max-num-seqs 256'), 99);
    assert.deepEqual(codes, [0, 0, 0, 0]);
    assert.match(summary, /every bound holds/);
    assert.match(comment, /^api\n--silent\n--method\nPATCH\nrepos\/o\/r\/issues\/comments\/99\n/);
  });
});
