// Short forms of measurements that fail when a server is wrong.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { measureAttack } from './cases/attacks.ts';
import agreement from './cases/endpoint-agreement.ts';
import { playSeason } from './cases/season.ts';
import soak from './cases/soak.ts';
import { runCase } from './harness.ts';

const silent = () => {};

it('a soak loses no acknowledged step, leaves no session, and answers whatever it is sent', async () => {
  const small = '--kills 1 --players 4 --steps 20 --sessions 100 --concurrent 16 --messages 3000 --rounds 1';
  const rows = await runCase(soak, small.split(' '), silent);
  assert.equal(rows.length, 4);
  assert.match(String(rows[0].result), /^0 of \d+ acknowledged steps lost/);
});

it('an attack is refused while another client plays on', async () => {
  const row = await measureAttack('body of a million keys', 1, join(import.meta.dirname, '..'));
  assert.equal(row.answer, '413 BODY_TOO_LONG');
  assert.ok(Number.isFinite(row['p99 of the other client, ms']));
  assert.doesNotMatch(String(row['stops in, s']), /over/);
});

it('a client measures at an endpoint what the simulation of its load predicts', async () => {
  const rows = await runCase(agreement, ['--seconds', '2', '--only', 'A100, 8 requests/s'], silent);
  const tpot = rows.find(({ figure }) => figure === 'TPOT mean')!;
  assert.ok(Math.abs(tpot['difference, %'] as number) < 30, JSON.stringify(tpot));
});

it('a season ranks who plays honestly before who tries every exploit, across a kill of the server', async () => {
  const { ranking, exploits, isVerified, isForgeryFound } = await playSeason({
    ...{ env: 'inferencegym', task: '1', agent: 'baseline', episodes: 20 },
  });
  assert.deepEqual(
    ranking.map(({ rank, name, finished }) => [rank, name, finished]),
    [
      [1, 'honest', 20],
      [2, 'exploits', 9],
    ],
  );
  assert.ok(exploits.length >= 17);
  assert.deepEqual(
    exploits.filter(({ gained }) => gained),
    [],
  );
  assert.deepEqual([isVerified, isForgeryFound], [true, true]);
});
