import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type * as Resvg from '@resvg/resvg-js';

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
