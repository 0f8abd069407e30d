export { alignedRows, figure, percent, snakeCase, terminalBars } from './format.ts';
export {
  type Chart,
  type ChartAxis,
  type Column,
  type Page,
  type Section,
  tableOf,
  type Unit,
} from './page.ts';
