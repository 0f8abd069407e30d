import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { benchmark, median, quantile, type Row, required, runCase, text } from './harness.ts';

const made = benchmark({
  what: 'Made up.',
  options: { count: 3, sizes: [1, 2], name: text, folder: required, quick: false },
  arguments: 'FILE ...',
  *run({ count, sizes, name, folder, quick }, files) {
    yield { count, sizes: sizes.join(), name: name ?? null, folder, quick, files: files.join() };
    yield 'a note';
    yield { figure: 1234.5678, share: 0.123456 };
    yield { figure: 12, share: Number.NaN };
  },
});

async function run(...args: string[]) {
  const lines: string[] = [];
  const rows = await runCase(made, args, (line) => lines.push(line));
  return { rows, lines };
}

describe('a case', () => {
  it('gets values of the types of its defaults', async () => {
    const { rows } = await run('--folder', 'here', '--count', '4', '--sizes', '5,6', '--quick', 'a', 'b');
    assert.deepEqual(rows[0], {
      count: 4,
      sizes: '5,6',
      name: null,
      folder: 'here',
      quick: true,
      files: 'a,b',
    } satisfies Row);
  });

  it('says what is missing or wrong', async () => {
    await assert.rejects(run(), /expected --folder/);
    await assert.rejects(run('--folder', 'a', '--count', 'many'), /expected a number for --count, got many/);
    await assert.rejects(run('--folder', 'a', '--colour', 'red'), /Unknown option '--colour'/);
  });

  it('prints a table for each kind of row, rounded, and the machine', async () => {
    const { lines } = await run('--folder', 'here');
    const text = lines.join('\n');
    assert.match(text, /^\| count \| sizes \|.*\n\| ---: \| --- \|.*\n\| 3 \| 1,2 \|/);
    assert.match(
      text,
      /\na note\n\n\| figure \| share \|\n\| ---: \| ---: \|\n\| 1,235 \| 0.1235 \|\n\| 12 \| - \|\n/,
    );
    assert.match(text, /\nNode \d+\.\d+\.\d+, \d+ cores of .*, load /);
  });

  it('prints all rows as JSON', async () => {
    const { lines, rows } = await run('--folder', 'here', '--json');
    assert.deepEqual(JSON.parse(lines.join('')), JSON.parse(JSON.stringify(rows)));
  });

  it('is found by its name, and has a line of what it measures', async () => {
    for (const file of globSync('cases/*.ts', { cwd: import.meta.dirname })) {
      const { default: found } = await import(join(import.meta.dirname, file));
      assert.match(found.what, /\.$/, file);
    }
    const script = join(import.meta.dirname, 'run.ts');
    const { status, stderr } = spawnSync(process.execPath, [script, 'nothing'], { encoding: 'utf8' });
    assert.equal(status, 2);
    assert.match(stderr, /expected one of .*concurrency.*, got nothing/);
  });
});

it('a median is the middle one, or the mean of two; a quantile lies between neighbours', () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.equal(quantile([0, 10], 0.25), 2.5);
  assert.ok(Number.isNaN(median([])));
});
