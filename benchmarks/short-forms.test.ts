// The short form of a measurement that fails when a server is wrong.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { measureAttack } from './cases/attacks.ts';

it('an attack is refused while another client plays on', async () => {
  const row = await measureAttack('body of a million keys', 1, join(import.meta.dirname, '..'));
  assert.equal(row.answer, '413 BODY_TOO_LONG');
  assert.ok(Number.isFinite(row['p99 of the other client, ms']));
  assert.doesNotMatch(String(row['stops in, s']), /over/);
});
