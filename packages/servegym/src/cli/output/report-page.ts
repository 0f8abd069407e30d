import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Chart, Page } from '@servegym/operators/report';
import { InputError } from '../failure.ts';

/** The part of the console's build that writes reports. */
interface ReportWriter {
  reportPage(page: Page): string;
  chartSvg(chart: Chart, title: string): string;
}

const path = fileURLToPath(import.meta.resolve('@servegym/console/dist/report.js'));

/** Whether the console is built, which reports are pages of. */
export const canWriteReports = () => existsSync(path);

/** Loaded when a report is written, as few commands write one. @throws InputError where the console is not built */
function writer(): ReportWriter {
  if (canWriteReports()) return createRequire(import.meta.url)(path) as ReportWriter;
  throw new InputError(
    'expected the built console, which reports are pages of: build it with `npm run build -w packages/console`',
    { code: 'PACKAGE_MISSING' },
  );
}

/** A page as one HTML file that needs nothing else: the console's page with the parts in it. */
export const reportPage = (page: Page) => writer().reportPage(page);

/** A chart of the console as SVG, in light colours. */
export const chartSvg = (chart: Chart, title: string) => writer().chartSvg(chart, title);
