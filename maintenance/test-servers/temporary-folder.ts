import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';

/** An empty folder, which is deleted after the tests of the `describe` or of the file that asks for it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
