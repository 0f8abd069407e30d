import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it, type TestContext } from 'node:test';
import { defaultSessionFile, openSessionFile } from './session-storage.ts';

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

describe('the file that sessions are kept in', () => {
  it('is in the state folder of the person, by the custom of the system', () => {
    const file = (platform: NodeJS.Platform, environment: Record<string, string> = {}) =>
      defaultSessionFile({ platform, home: '/home/ada', environment });
    assert.equal(file('linux'), '/home/ada/.local/state/servegym/sessions.db');
    assert.equal(file('linux', { XDG_STATE_HOME: '/state' }), '/state/servegym/sessions.db');
    assert.equal(file('linux', { XDG_STATE_HOME: '' }), '/home/ada/.local/state/servegym/sessions.db');
    assert.equal(file('darwin'), '/home/ada/Library/Application Support/servegym/sessions.db');
    assert.equal(file('win32', { LOCALAPPDATA: '/local' }), '/local/servegym/sessions.db');
  });

  it('comes with its folders, which are nobody else’s', async (t) => {
    const folder = join(temporaryFolder(t), 'a', 'b');
    const store = openSessionFile(join(folder, 'sessions.db'));
    await store.close();
    assert.equal(statSync(folder).mode & 0o777, 0o700);
  });

  it('cannot lie below something that is no folder', (t) => {
    const file = join(temporaryFolder(t), 'file');
    new DatabaseSync(file).exec('CREATE TABLE t (a)');
    assert.throws(() => openSessionFile(join(file, 'x', 'sessions.db')), {
      name: 'InputError',
      code: 'STORE_ERROR',
      message: /^Sessions cannot be kept in `.*sessions\.db`: ENOTDIR.*Choose another file with --store/,
    });
  });

  it('cannot be one that another program holds locked', (t) => {
    const file = join(temporaryFolder(t), 'sessions.db');
    const holder = new DatabaseSync(file);
    t.after(() => holder.close());
    holder.exec('BEGIN EXCLUSIVE');
    assert.throws(() => openSessionFile(file, { lockTimeoutMs: 1 }), {
      name: 'InputError',
      code: 'STORE_ERROR',
      message: /database is locked\. End the program that holds it, or choose another file/,
    });
  });
});
