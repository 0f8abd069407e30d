import type { ChartSpec } from '../charts/chart-spec.ts';
import { palette, type Tone } from '../charts/palette.ts';
import { saveFile } from '../panels/csv.ts';

/** An entry of the legend as it reads now. */
interface LegendText {
  readonly label: string;
  readonly tone: Tone;
  readonly value: string;
}

const MARGIN = 16;
const LINE = 22;

/** Draws a chart with its title and legend on a picture of its own and hands it to the person as a PNG file. */
export function savePng(
  { id, title }: ChartSpec,
  unit: string,
  legend: readonly LegendText[],
  plot: HTMLCanvasElement | undefined,
): void {
  if (!plot) return;
  const ratio = devicePixelRatio;
  const width = plot.width / ratio + 2 * MARGIN;
  const picture = document.createElement('canvas');
  const context = picture.getContext('2d')!;
  const font = getComputedStyle(document.documentElement).fontFamily;
  context.font = `13px ${font}`;
  const rows = legendRows(context, legend, width - 2 * MARGIN);
  const height = plot.height / ratio + 2 * MARGIN + LINE * (1 + rows.length);
  picture.width = width * ratio;
  picture.height = height * ratio;
  context.scale(ratio, ratio);
  const colors = palette.peek();
  context.fillStyle = colors.surface;
  context.fillRect(0, 0, width, height);
  context.textBaseline = 'top';
  context.fillStyle = colors.text;
  context.font = `600 15px ${font}`;
  context.fillText(title, MARGIN, MARGIN);
  const titleWidth = context.measureText(title).width;
  context.font = `13px ${font}`;
  context.fillStyle = colors.muted;
  context.fillText(unit, MARGIN + titleWidth + 10, MARGIN + 2);
  rows.forEach((row, i) => {
    for (const { x, label, tone, value } of row) {
      const y = MARGIN + LINE * (1 + i);
      context.fillStyle = colors[tone];
      context.fillRect(MARGIN + x, y + 5, 12, 4);
      context.fillStyle = colors.text;
      context.fillText(`${label} ${value}`, MARGIN + x + 18, y);
    }
  });
  context.drawImage(plot, MARGIN, MARGIN + LINE * (1 + rows.length), plot.width / ratio, plot.height / ratio);
  picture.toBlob((blob) => {
    if (blob) saveFile(`servegym-${id}.png`, blob);
  });
}

/** Breaks a legend into rows of at most `width` CSS pixels. */
function legendRows(
  context: CanvasRenderingContext2D,
  legend: readonly LegendText[],
  width: number,
): (LegendText & { readonly x: number })[][] {
  const rows: (LegendText & { readonly x: number })[][] = [];
  let x = width;
  for (const entry of legend) {
    const wide = context.measureText(`${entry.label} ${entry.value}`).width + 36;
    if (x + wide > width) {
      rows.push([]);
      x = 0;
    }
    rows[rows.length - 1].push({ ...entry, x });
    x += wide;
  }
  return rows;
}
