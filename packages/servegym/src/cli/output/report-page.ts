import { createRequire } from 'node:module';

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

/** Loaded when a report is written, as few commands write one. */
const writer = (): ReportWriter =>
  createRequire(import.meta.url)('@servegym/console/dist/report.js') as ReportWriter;

/** A report as one HTML file that needs nothing else: the console's page with the report in it. */
export function reportPage(report: Report): string {
  return writer().reportPage(report);
}

/** The main chart of a report as SVG, as its page has it. */
export function reportPlot(report: Report): string {
  return writer().reportPlot(report);
}
