export { CHART_WIDTH, chartInPage, chartSvg, escaped } from './chart-svg.ts';
export { alignedRows, figure, percent, snakeCase, terminalBars } from './format.ts';
export {
  type Chart,
  type ChartAxis,
  type Column,
  type Page,
  pageHtml,
  type Section,
  tableOf,
  type Unit,
} from './page.ts';
export { decades, roundTicks, UNITS } from './units.ts';
