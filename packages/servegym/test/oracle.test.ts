import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { referencesTable } from '../src/cli/evaluate/check-tasks.ts';
import { runCommand } from './in-process.ts';

describe('servegym evaluate --check recorded', () => {
  it('prints what is recorded, and the docs have it word for word', async () => {
    const { code, stdout } = await runCommand('evaluate', '--check', 'recorded');
    assert.equal(code, 0);
    const references = Object.fromEntries(
      llmserve.tasks.shippedIds.map((id) => [id, llmserve.anchors.reference(id)]),
    );
    assert.equal(stdout.trimEnd(), referencesTable(references));
    const docs = readFileSync(new URL('../../../docs/environments.md', import.meta.url), 'utf8');
    assert.ok(
      docs.includes(stdout.trimEnd()),
      'docs/environments.md: put the output of `servegym evaluate --check recorded` there',
    );
  });

  it('prints JSON with the room, the bound and the returns of each seed', async () => {
    const { stdout } = await runCommand(
      'evaluate',
      '--check',
      'recorded',
      '--task',
      'bursty_workload',
      '--json',
    );
    const { bursty_workload } = JSON.parse(stdout);
    assert.ok(bursty_workload.test.room_to_adapt >= 0.08);
    assert.ok(bursty_workload.test.bound > bursty_workload.test.clairvoyant.mean);
    assert.ok(
      Math.abs(
        bursty_workload.test.certificate_gap -
          (bursty_workload.test.bound - bursty_workload.test.clairvoyant.mean),
      ) < 1e-9,
    );
    assert.equal(typeof bursty_workload.seeds[2_000_000].clairvoyant, 'number');
  });
});
