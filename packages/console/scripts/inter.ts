import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

const FONT = fileURLToPath(
  import.meta.resolve('@fontsource-variable/inter/files/inter-latin-wght-normal.woff2'),
);

/**
 * Sets a page in Inter, the first of the fonts that it asks for, as on a machine that has it. The page itself brings no
 * font along. Its context must have `bypassCSP`.
 */
export async function setInInter(page: Page): Promise<void> {
  const source = readFileSync(FONT).toString('base64');
  await page.addStyleTag({
    content: `@font-face { font-family: Inter; font-weight: 100 900; src: url(data:font/woff2;base64,${source}) }`,
  });
  await page.evaluate(() => document.fonts.load('14px Inter'));
}
