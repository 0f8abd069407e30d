import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type * as Resvg from '@resvg/resvg-js';
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

/** Pixels of the picture for a unit of the drawing. */
const ZOOM = 2;

const require = createRequire(import.meta.url);

/** The one font that the published package carries; in a checkout, that of the package it comes from. */
function fontFile(): string {
  const carried = join(import.meta.dirname, '../../../fonts/DejaVuSans.ttf');
  if (existsSync(carried)) return carried;
  return require.resolve('dejavu-fonts-ttf/ttf/DejaVuSans.ttf');
}

/**
 * Draws SVG as PNG, the same on every machine: its fonts are not used. `undefined` where the native code that draws is
 * not installed, as in the Python package.
 */
export function pngRenderer(): ((svg: string) => Uint8Array) | undefined {
  let resvg: typeof Resvg;
  try {
    resvg = require('@resvg/resvg-js');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
  const font = { loadSystemFonts: false, fontFiles: [fontFile()], defaultFontFamily: 'DejaVu Sans' };
  return (svg) => new resvg.Resvg(svg, { font, fitTo: { mode: 'zoom', value: ZOOM } }).render().asPng();
}
