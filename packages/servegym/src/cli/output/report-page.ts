import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { InputError } from '../input-error.ts';

/** What a page shows that a command writes. */
export interface Report {
  readonly kind: 'plan' | 'tune' | 'training';
  readonly title: string;
  /** Text below the title. */
  readonly lead: string;
  /**
   * `plan`: the object of `plan --json`. `tune`: a list of those of `tune --json`, each with what its `page` draws
   * beside it. `training`: the lines of `metrics.jsonl`.
   */
  readonly result: object;
  /** Further sections in words: sentences, or a text to copy. */
  readonly notes?: readonly { title: string; items?: readonly string[]; code?: string }[];
}

/** The part of the console's build that writes reports. */
interface ReportWriter {
  reportPage(report: Report): string;
  reportPlot(report: Report): string;
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

/** A report as one HTML file that needs nothing else: the console's page with the report in it. */
export function reportPage(report: Report): string {
  return writer().reportPage(report);
}

/** The main chart of a report as SVG, as its page has it. */
export function reportPlot(report: Report): string {
  return writer().reportPlot(report);
}
