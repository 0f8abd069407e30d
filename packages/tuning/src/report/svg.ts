/** A coordinate, pixels. */
export function px(value: number): string {
  return value.toFixed(1);
}

/** Text for SVG and HTML, in elements and in quoted attributes. */
export function escapeText(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');
}

/** Distance of ticks: the least of 1, 2, 5, 10, 20, ... (and their tenths, hundredths, ...) that is not below `least`. */
export function tickStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((factor) => factor * power >= least * (1 - 1e-9))! * power;
}
