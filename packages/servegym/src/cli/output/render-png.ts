import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Resvg } from '@resvg/resvg-js';

/** Pixels of the picture for a unit of the drawing. */
const ZOOM = 2;
const FONT = fontFile();

/** The one font that the published package carries; in a checkout, that of the package it comes from. */
function fontFile(): string {
  const carried = join(import.meta.dirname, '../../../fonts/DejaVuSans.ttf');
  if (existsSync(carried)) return carried;
  return createRequire(import.meta.url).resolve('dejavu-fonts-ttf/ttf/DejaVuSans.ttf');
}

/** A drawing as PNG. The same on every machine: its fonts are not used. */
export function renderPng(svg: string): Uint8Array {
  const font = { loadSystemFonts: false, fontFiles: [FONT], defaultFontFamily: 'DejaVu Sans' };
  return new Resvg(svg, { font, fitTo: { mode: 'zoom', value: ZOOM } }).render().asPng();
}
