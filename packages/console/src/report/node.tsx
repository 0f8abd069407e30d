import { readFileSync } from 'node:fs';
import type { Chart, Page } from '@servegym/operators/report';
import { renderToString } from 'preact-render-to-string';
import { CHART_WIDTH, XYChartSvg } from '../charts/xy-chart.tsx';
import base from '../styles/base.css?inline';
import chartStyle from '../styles/xy-chart.css?inline';

/** A page as one HTML file that needs nothing else: the built page with its parts in it. */
export function reportPage(report: Page): string {
  const page = readFileSync(new URL('report.html', import.meta.url), 'utf8');
  const text = (one: string) => one.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  // A `<` in JSON stands in a string, and must not end the element.
  const json = JSON.stringify(report).replaceAll('<', '\\u003c');
  return page.replace('ServeGym report', () => text(report.title)).replace('{"report":null}', () => json);
}

/** A chart as SVG that stands alone, in light colours. */
export function chartSvg(chart: Chart, title: string): string {
  return renderToString(<XYChartSvg chart={chart} width={CHART_WIDTH} title={title} style={plainStyle()} />);
}

/** The style sheet of charts without variables and relative sizes, which programs that draw SVG do not know. */
function plainStyle(): string {
  const colour = (name: string) =>
    new RegExp(`--${name}:\\s*(?:light-dark\\()?\\s*([^,;)}]+)`).exec(base)![1].trim();
  return chartStyle
    .replace(/var\(--([\w-]+)\)/g, (_, name: string) => colour(name))
    .replace(/([\d.]+)rem/g, (_, size: string) => `${16 * Number(size)}px`);
}
