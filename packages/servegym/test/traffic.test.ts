import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PUBLIC_WORKLOAD_IDS, type PublicWorkloadId, publicWorkload } from '@servegym/environments';
import { parseTrace } from '@servegym/simulator';
import { runServegym } from '../../../maintenance/test-servers/servegym.ts';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { runCommand } from './in-process.ts';

const page = join(import.meta.dirname, '../../../docs/traffic.md');
const tiny = join(import.meta.dirname, 'fixtures/trace.csv');

describe('servegym traffic', () => {
  const folder = temporaryFolder();

  /** Draws a trace as long as the model's own, and reads it. */
  async function draw(id: PublicWorkloadId, seed: number, faster = 1) {
    const file = join(folder, `${id}.csv`);
    const { seconds, arrivals } = publicWorkload(id);
    const rate = faster === 1 ? '' : `@${faster * arrivals.perSecond}/s`;
    const traffic = `${id}${rate},${Math.min(86_400, seconds)}s`;
    const drawn = await runCommand('traffic', 'draw', traffic, file, '--seed', `${seed}`);
    assert.equal(drawn.code, 0, drawn.stderr);
    const text = readFileSync(file, 'utf8');
    return { text, trace: parseTrace(text, file) };
  }

  it('draws the same trace for the same seed, faster when asked', async () => {
    const { text } = await draw('azure-code-2023', 1);
    assert.equal((await draw('azure-code-2023', 1)).text, text);
    const { trace } = await draw('azure-code-2023', 1, 2);
    const ratio = trace.arrivalMs.length / (text.trim().split('\n').length - 1);
    assert.ok(Math.abs(ratio - 2) < 0.2, `${ratio}`);
    const refused = await runCommand('traffic', 'draw', 'azure', join(folder, 'none.csv'));
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /chat@12\/s \(also code, rag, agents/);
  });

  it('lists them with their distances, as the documents show', async () => {
    const { stdout } = await runServegym('traffic', 'describe');
    assert.ok(
      readFileSync(page, 'utf8').includes(`\n\`\`\`text\n${stdout}\`\`\`\n`),
      'docs/traffic.md shows another list',
    );
    for (const id of PUBLIC_WORKLOAD_IDS) assert.match(stdout, new RegExp(`^${id} .*\\d`, 'm'));
    assert.match(stdout, /KS distance/);
  });

  it('describes a file, and drawn traffic', async () => {
    const file = await runCommand('traffic', 'describe', tiny, '--json');
    const { format, requests, requests_per_s_over_time: bars } = JSON.parse(file.stdout);
    assert.deepEqual([format, requests, Array.isArray(bars)], ['CSV, as Azure publishes it', 4, true]);
    const drawn = await runCommand('traffic', 'describe', '100:10@5/s,60s');
    assert.match(drawn.stdout, /^5 requests\/s of 100 tokens in, 10 out: drawn; \d+ requests\n\nduration/);
  });

  it('converts files once, so that other commands read them as they are', async () => {
    const log = join(folder, 'log.csv');
    writeFileSync(log, 't0,n_in,n_out\n2000,20,2\n1000,10,1\n3000,30,0\n');
    const clean = join(folder, 'clean.jsonl');
    const asked = await runCommand('traffic', 'describe', log);
    assert.equal(asked.code, 2);
    assert.match(asked.stderr, /Type `servegym traffic convert .*log\.csv clean\.jsonl --map arrival=NAME/);
    const options = ['--map', 'arrival=t0,input=n_in,output=n_out', '--time-unit', 'ms', '--sort'];
    const { code, stderr } = await runCommand(
      'traffic',
      'convert',
      log,
      clean,
      ...options,
      '--skip-unanswered',
    );
    assert.equal(code, 0, stderr);
    assert.match(stderr, /1 that failed left out, 1 put in order/);
    const trace = parseTrace(readFileSync(clean, 'utf8'), clean);
    assert.deepEqual([...trace.arrivalMs], [0, 1000]);
    assert.deepEqual([...trace.inputTokens], [10, 20]);
  });

  it('keeps the prefixes that prompts share, with the size of their blocks', async () => {
    const [drawn, copy, again] = ['drawn', 'copy', 'again'].map((name) => join(folder, `${name}.jsonl`));
    await runCommand('traffic', 'draw', 'rag@4/s,60s', drawn);
    for (const [from, to] of [
      [drawn, copy],
      [copy, again],
    ]) {
      const { code, stderr } = await runCommand('traffic', 'convert', from, to);
      assert.equal(code, 0, stderr);
    }
    assert.equal(readFileSync(again, 'utf8'), readFileSync(copy, 'utf8'));
    const [before, after] = [drawn, again].map((file) => parseTrace(readFileSync(file, 'utf8'), file));
    assert.deepEqual(after.prefixBlocks, before.prefixBlocks);
    assert.ok(before.prefixBlocks!.blockTokens !== 512 && before.prefixBlocks!.ids.length > 100);
  });
});
