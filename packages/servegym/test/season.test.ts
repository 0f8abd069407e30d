import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { inferencegym } from '@servegym/environments';
import { connect } from '@servegym/openenv/client';
import { startSeason } from '../../../maintenance/test-servers/servegym.ts';
import { runCommand } from './in-process.ts';

it('servegym season is played from its creation to the check of its results, across a kill of the server', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'season-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const season = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand('season', ...args);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const [file, results] = [join(folder, 'season.db'), join(folder, 'results.json')];
  const rules = ['--name', 'spring', '--env', 'inferencegym', '--task', '1', '--episodes', '20'];
  const [, commitment] = /commitment to the seeds now: (\w+)/.exec(await season('create', file, ...rules))!;
  const submission = (await season('admit', file, 'Ada')).trim();
  await season('admit', file, 'Bob');
  const reset = { submission, task_id: '1' } as never;

  const killed = await startSeason(file, '--reset-time', '0');
  t.after(() => killed.stop('SIGKILL'));
  const cut = await connect<typeof inferencegym>(killed.url);
  await cut.reset(reset);
  for (let step = 0; step < 5; step++) await cut.step(inferencegym.defaultAction);
  await killed.stop('SIGKILL');
  const server = await startSeason(file, '--reset-time', '0');
  t.after(() => server.stop('SIGKILL'));
  const resumed = await connect<typeof inferencegym>(server.url, { sessionId: cut.sessionId! });
  let steps = 5;
  for (let done = false; !done; steps++) ({ done } = await resumed.step(inferencegym.defaultAction));
  assert.equal(steps, 200);
  await resumed.close();
  await server.stop();

  const ranking = JSON.parse(await season('close', file, '--out', results, '--json'));
  assert.deepEqual(
    ranking.map(({ name, finished }: Record<string, unknown>) => [name, finished]),
    [
      ['Ada', 1],
      ['Bob', 0],
    ],
  );
  await season('verify', results, '--commitment', commitment!);
  const forged = JSON.parse(readFileSync(results, 'utf8'));
  forged.submissions[1].episodes = forged.submissions[0].episodes;
  writeFileSync(results, JSON.stringify(forged));
  assert.equal((await runCommand('season', 'verify', results)).code, 1);
});

it('servegym season prints nothing of a name that could steer a terminal', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'season-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const created = await runCommand('season', 'create', join(folder, 'a.db'), '--name', 'a\u001b[2J');
  assert.deepEqual([created.code, /\(code: INVALID_NAME\)/.test(created.stderr)], [2, true]);
  assert.equal((created.stdout + created.stderr).includes('\u001b'), false);
  const rules = { name: 'spring', task_ids: ['static_workload'], episodes: 20, minutes: 1, created_at: 0 };
  const environment = { id: 'llmserve', version: '0\u001b[2J' };
  const season = { ...rules, environment, commitment: '' };
  const file = join(folder, 'results.json');
  writeFileSync(file, JSON.stringify({ format: 'openenv-season/2', season, secret: '', submissions: [] }));
  const { code, stdout, stderr } = await runCommand('season', 'verify', file);
  assert.equal(code, 1);
  assert.match(stderr, /played on llmserve 0\?\[2J/);
  assert.equal((stdout + stderr).includes('\u001b'), false);
});

describe('servegym season, with bad input', () => {
  for (const [what, args, message] of [
    [
      'creates none on a task that is not there',
      ['create', 'x.db', '--name', 'x', '--task', 'none'],
      /expected --task to be one of static_workload/,
    ],
    [
      'creates none of few episodes',
      ['create', 'x.db', '--name', 'x', '--episodes', '19'],
      /whole number from 20 to/,
    ],
    ['serves none that is not there', ['serve', './none.db'], /There is no file \.\/none\.db/],
    [
      'verifies no file that is no results',
      ['verify', join(import.meta.dirname, '../package.json')],
      /expected the results of a season in .*: format/,
    ],
  ] as const) {
    it(what, async () => {
      const { code, stderr } = await runCommand('season', ...args);
      assert.match(stderr, message);
      assert.equal(code, 2);
    });
  }
});
