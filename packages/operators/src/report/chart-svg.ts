import type { Chart, ChartAxis } from './page.ts';
import { type Domain, decades, roundTicks, UNITS } from './units.ts';

/** Width of a drawing where none is given, and height of one whose chart names none, px. */
export const CHART_WIDTH = 640;
const HEIGHT = 320;
const [RIGHT, TOP, BOTTOM] = [16, 16, 44];
/** Height of a line of the small text, and width of one of its characters. */
const [ROW, CHARACTER] = [18, 7];

/** With the colours of a page, which are variables of its style sheet. */
const STYLE = `.xy .first{color:var(--accent)}
.xy .second{color:var(--waiting)}
.xy .third{color:var(--running)}
.xy .faint{color:var(--line-strong)}
.xy text{fill:var(--muted);font-size:.75rem}
.xy text.title{fill:var(--text);font-size:.93rem}
.xy text.first,.xy text.second{fill:var(--text);font-weight:600}
.xy .paper{fill:var(--surface)}
.xy path{fill:none;stroke:currentColor;stroke-width:1.5px}
.xy path.grid{stroke:var(--line);stroke-width:1px}
.xy path.thick{stroke-width:7px}
.xy circle{fill:currentColor;stroke-width:1.5px}
.xy circle.first,.xy circle.second{stroke:var(--surface)}
.xy circle.hollow{fill:var(--surface);stroke:currentColor}
.xy circle.hollow.faint{stroke:var(--muted)}`;

/** Light colours, as the console has them. */
const LIGHT: Readonly<Record<string, string>> = {
  ...{ accent: '#0a6fb5', waiting: '#d98200', running: '#008a64', muted: '#556270', text: '#10161d' },
  ...{ surface: '#fff', line: '#e1e6eb', 'line-strong': '#c3ccd5' },
};

/** Programs that draw SVG know no variables and no relative sizes. */
const LIGHT_STYLE = STYLE.replace(/var\(--([\w-]+)\)/g, (_, name: string) => LIGHT[name]!).replace(
  /([\d.]+)rem/g,
  (_, size: string) => `${16 * Number(size)}px`,
);

/** Text as HTML, or as a value of an attribute. */
export const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

/** A chart as SVG that stands alone, in light colours. */
export const chartSvg = (chart: Chart, title: string): string => drawn(chart, CHART_WIDTH, title);

/** A chart as SVG for a page, in the colours that the page's style sheet gives. */
export const chartInPage = (chart: Chart, width: number): string => drawn(chart, width);

function drawn(chart: Chart, width: number, title?: string): string {
  const { label, lines = [], dots = [], legend = [], height = HEIGHT } = chart;
  const points = [...lines.flatMap((line) => line.points), ...dots.map((dot) => [dot.x, dot.y] as const)];
  const x = axisOf(
    chart.x,
    points.map(([at]) => at),
  );
  const y = axisOf(
    chart.y,
    points.map(([, at]) => at),
  );
  const titleHeight = title === undefined ? 0 : 24;
  const top = TOP + titleHeight + (legend.length === 0 ? 0 : ROW) + (y.title === '' ? 0 : ROW);
  const left = 14 + CHARACTER * Math.max(6, ...y.ticks.map((tick) => y.text(tick).length));
  const [atX, atY] = [scale(x, left, width - RIGHT), scale(y, height - BOTTOM, top)];
  const text = (px: number, py: number, of: string, anchor = '', look = '') =>
    `<text${look && ` class="${look}"`} x="${px}" y="${py}"${anchor && ` text-anchor="${anchor}"`}>${escaped(of)}</text>`;
  const circle = (look: string, hollow: boolean | undefined, [cx, cy, r]: readonly number[], of = '') =>
    `<circle class="${look}${hollow ? ' hollow' : ''}" cx="${cx}" cy="${cy}" r="${r}">${of}</circle>`;
  const named = (name: string) => `<title>${escaped(name)}</title>`;
  let end = 8 - CHARACTER;
  const entries = legend.map(({ look, hollow, text: name }) => {
    const at = end + CHARACTER;
    end = at + 14 + CHARACTER * name.length;
    return `<g>${circle(look, hollow, [at + 5, titleHeight + 8, 4.5])}${text(at + 14, titleHeight + 12, name)}</g>`;
  });
  const grid = y.ticks.map(
    (tick) =>
      `<g><path d="M${left} ${atY(tick)}H${width - RIGHT}" class="grid"></path>${text(left - 6, atY(tick) + 4, y.text(tick), 'end')}</g>`,
  );
  const paths = lines
    .filter((line) => line.points.length > 0)
    .map((line) => {
      const corners = line.points.map(([px, py]) => `${round(atX(px))} ${round(atY(py))}`);
      return `<path class="${line.look}${line.thick ? ' thick' : ''}" d="M${corners.join('L')}">${line.title === undefined ? '' : named(line.title)}</path>`;
    });
  const marks = dots.map((dot) => {
    const [px, py] = [atX(dot.x), atY(dot.y)];
    const isRight = px > width - 130;
    const [from, anchor] = isRight ? [px - 10, 'end'] : [px + 10, 'start'];
    const name = dot.text === undefined ? '' : text(from, py + 4, dot.text, anchor, dot.look);
    return `<g>${circle(dot.look, dot.hollow, [px, py, dot.radius].map(round), named(dot.title))}${name}</g>`;
  });
  return [
    `<svg class="xy" xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(label)}">`,
    `<style>${title === undefined ? STYLE : LIGHT_STYLE}</style>`,
    title === undefined ? '' : `<rect class="paper" width="${width}" height="${height}"></rect>`,
    title === undefined ? '' : text(8, 20, title, '', 'title'),
    ...[...entries, ...grid],
    ...x.ticks.map((tick) => text(atX(tick), height - BOTTOM + 18, x.text(tick), 'middle')),
    text((left + width - RIGHT) / 2, height - 6, x.title, 'middle'),
    y.title === '' ? '' : text(8, top - 12, y.title),
    ...[...paths, ...marks, '</svg>'],
  ].join('');
}

/** An axis with what it does not say itself: its ends, its ticks and how they are written. */
function axisOf(
  { title, unit = 'plain', logarithmic, names, ...axis }: ChartAxis,
  values: readonly number[],
) {
  const own = names && ([names.length - 0.5, -0.5] as const);
  const room: Domain = logarithmic
    ? [Math.min(...values) / 1.3, Math.max(...values) * 1.3]
    : [0, Math.max(...values, 1e-9) * 1.1];
  const domain = axis.domain ?? own ?? room;
  const marks = logarithmic ? decades(domain) : roundTicks(domain);
  const ticks = axis.ticks ?? names?.map((_, i) => i) ?? marks;
  const text = names ? (at: number) => names[at]! : UNITS[unit];
  return { title, logarithmic, domain, ticks, text };
}

/** Pixels of the values of an axis. Values that a logarithmic one has no place for stand at its start. */
function scale({ domain, logarithmic }: ReturnType<typeof axisOf>, from: number, to: number) {
  // biome-ignore lint/nursery/noJsRestrictedProperties: pixels hang on no last bit
  const place = (value: number) => (logarithmic ? Math.log(Math.max(domain[0], value)) : value);
  const [low, high] = [place(domain[0]), place(domain[1])];
  return (value: number) => from + ((place(value) - low) / (high - low || 1)) * (to - from);
}

const round = (pixels: number) => Math.round(10 * pixels) / 10;
