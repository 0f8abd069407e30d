import { readFileSync } from 'node:fs';
import { renderToString } from 'preact-render-to-string';
import { CHART_WIDTH, type XYChart, XYChartSvg } from '../charts/xy-chart.tsx';
import { frontChart } from '../plan/plan-answer.tsx';
import base from '../styles/base.css?inline';
import chartStyle from '../styles/xy-chart.css?inline';
import { metricChart, type Report } from './sections.tsx';
import { tuneFrontChart } from './tune-report.tsx';

/** The report as one HTML file that needs nothing else: the built page with the report in it. */
export function reportPage(report: Report): string {
  const page = readFileSync(new URL('report.html', import.meta.url), 'utf8');
  const text = (one: string) => one.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  // A `<` in JSON stands in a string, and must not end the element.
  const json = JSON.stringify(report).replaceAll('<', '\\u003c');
  return page.replace('ServeGym report', () => text(report.title)).replace('{"report":null}', () => json);
}

/** The main chart of a report as SVG that stands alone, in light colours. */
export function reportPlot(report: Report): string {
  return chartSvg(mainChart(report), report.title);
}

/** A chart as SVG that stands alone, in light colours. */
export function chartSvg(chart: XYChart, title: string): string {
  return renderToString(<XYChartSvg chart={chart} width={CHART_WIDTH} title={title} style={plainStyle()} />);
}

/** @throws Error where there is nothing to draw */
function mainChart(report: Report): XYChart {
  switch (report.kind) {
    case 'plan':
      return frontChart(report.result.plans);
    case 'tune': {
      const [first] = report.result;
      if ('nearest' in first) throw new Error('Expected settings that meet the SLO');
      return tuneFrontChart(first, first.page.others);
    }
    case 'training':
      return metricChart(report.result, 'mean_return');
  }
}

/** The style sheet of charts without variables and relative sizes, which programs that draw SVG do not know. */
function plainStyle(): string {
  const colour = (name: string): string => {
    const value = new RegExp(`--${name}:\\s*(?:light-dark\\()?\\s*([^,;)}]+)`).exec(base)![1].trim();
    return value;
  };
  return chartStyle
    .replace(/var\(--([\w-]+)\)/g, (_, name: string) => colour(name))
    .replace(/([\d.]+)rem/g, (_, size: string) => `${16 * Number(size)}px`);
}
