import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from './in-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'policy-'));
/** One short trace. */
const SHORT = ['--traces', '1', '--requests', '300'];

async function run(...words: string[]) {
  const { code, stdout, stderr } = await runCommand('policy', ...words);
  assert.equal(code, 0, stderr);
  return stdout;
}

describe('servegym policy', () => {
  it('leads from a template to a score, to better numbers and to a real system', async () => {
    for (const kind of ['router', 'scheduler', 'autoscaler']) {
      const file = join(folder, `${kind}.ts`);
      assert.match(await run('new', kind, file), new RegExp(`--suite ${kind}`));
      const scored = JSON.parse(await run('evaluate', file, '--suite', kind, ...SHORT, '--json'));
      assert.deepEqual([scored.suite, scored.split, scored.faults], [kind, 'validation', []]);
      assert.ok(Number.isFinite(scored.combined_score) && scored.calls > 0, JSON.stringify(scored));
    }
    const page = join(folder, 'page.html');
    await run('evaluate', 'least-loaded', ...SHORT, '--report', page);
    assert.match(readFileSync(page, 'utf8'), /<title>least-loaded on router, validation<\/title>/);
    const [router, found] = [join(folder, 'router.ts'), join(folder, 'found.ts')];
    const search = ['--generations', '1', '--population', '4', '--output', found, '--json'];
    const { parameters, validation } = JSON.parse(await run('search', router, ...SHORT, ...search));
    assert.deepEqual(Object.keys(parameters), ['prefix', 'queue', 'kv']);
    assert.ok(readFileSync(found, 'utf8').includes(`prefix: ${parameters.prefix},`));
    assert.deepEqual(
      validation.policies.map(({ policy }: { policy: string }) => policy),
      [found, router],
    );
    assert.match(await run('export', found, '--to', 'epp'), /kind: EndpointPickerConfig/);
    assert.match(await run('export', join(folder, 'scheduler.ts'), '--to', 'vllm'), /class PolicyScheduler/);
  });

  it('takes our policies by name, and says which there are', async () => {
    const compared = await run('compare', 'known-router', 'least-loaded', ...SHORT);
    assert.match(compared, /known-router .*\n.*least-loaded/);
    const { code, stderr } = await runCommand('policy', 'evaluate', 'least-loded', ...SHORT);
    assert.equal(code, 2);
    assert.match(stderr, /expected a file, or one of epp-default, .*least-loaded.*, got least-loded/);
  });
});
