import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { findTraffic, TRAFFIC_IDS } from '@servegym/environments';
import { runServegym } from './serve-process.ts';

const traces = join(import.meta.dirname, '../../../../shared/data/traces');
const page = join(import.meta.dirname, '../../../docs/traffic.md');
const tiny = join(import.meta.dirname, 'fixtures/trace.csv');

describe('servegym traffic', () => {
  it('fits the models that the repository holds to the public traces again', async () => {
    assert.ok(existsSync(traces), `the traces are missing: expected them at ${traces}`);
    const { code, stdout, stderr } = await runServegym('traffic', 'fit', '--data', traces, '--json');
    assert.equal(stderr, '');
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(stdout), TRAFFIC_IDS.map(findTraffic));
  });

  it('lists them with their distances, as the documents show', async () => {
    const { stdout } = await runServegym('traffic', 'list');
    assert.ok(
      readFileSync(page, 'utf8').includes(`\n\`\`\`text\n${stdout}\`\`\`\n`),
      'docs/traffic.md shows another list',
    );
    for (const id of TRAFFIC_IDS) assert.match(stdout, new RegExp(`^${id} .*\\d`, 'm'));
    assert.match(stdout, /KS distance/);
  });

  it('says what it lacks', async () => {
    for (const [args, message] of [
      [['fit'], /expected traces/],
      [['fit', '--data', import.meta.dirname], /AzureLLMInferenceTrace_conv\.csv/],
      [['fit', tiny], /at least 200 requests/],
    ] as const) {
      const { code, stderr } = await runServegym('traffic', ...args);
      assert.equal(code, 2);
      assert.match(stderr, message);
    }
  });
});
