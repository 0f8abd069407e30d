import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { temporaryFolder } from '../../../../maintenance/test-servers/temporary-folder.ts';
import { requireWritable, writeOutputFile } from './files.ts';

const folder = temporaryFolder();

describe('a file that was named for output', () => {
  const path = join(folder, 'report.txt');

  it('is written as a whole', async () => {
    await writeOutputFile(path, ['one ', 'two']);
    assert.equal(readFileSync(path, 'utf8'), 'one two');
    assert.deepEqual(readdirSync(folder), ['report.txt']);
  });

  it('stays as it was when what it should hold cannot be made', async () => {
    writeFileSync(path, 'before');
    function* broken() {
      yield 'half';
      throw new RangeError('no more');
    }
    await assert.rejects(writeOutputFile(path, broken()), { name: 'RangeError', message: 'no more' });
    assert.equal(readFileSync(path, 'utf8'), 'before');
    assert.deepEqual(readdirSync(folder), ['report.txt']);
  });

  it('may be a device', async () => {
    await requireWritable('/dev/null');
    await writeOutputFile('/dev/null', ['gone']);
  });

  it('is refused before and after the work where it cannot be written', async () => {
    for (const [where, reason] of [
      [join(folder, 'none', 'x.html'), /x\.html: there is no such folder/],
      [join(path, 'x.html'), /x\.html: there is no such folder/],
      [folder, /it is a folder/],
    ] as const) {
      const refusal = { name: 'InputError', code: 'FILE_UNWRITABLE', message: reason };
      await assert.rejects(requireWritable(where), refusal);
      await assert.rejects(writeOutputFile(where, ['x']), refusal);
    }
    await requireWritable(undefined);
    await requireWritable(path);
    await requireWritable(join(folder, 'new.html'));
  });
});
