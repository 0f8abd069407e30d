import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Page, pageHtml } from '@servegym/operators/report';
import { InputError } from '../failure.ts';

const path = fileURLToPath(import.meta.resolve('@servegym/console/dist/report.html'));

/** Whether the console is built, which reports are pages of. */
export const canWriteReports = () => existsSync(path);

/** A page as one HTML file that needs nothing else. @throws InputError where the console is not built */
export function reportPage(page: Page): string {
  if (canWriteReports()) return pageHtml(readFileSync(path, 'utf8'), page);
  throw new InputError(
    'expected the built console, which reports are pages of: build it with `npm run build -w packages/console`',
    { code: 'PACKAGE_MISSING' },
  );
}
