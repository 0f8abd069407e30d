export { alignedRows, snakeCase, terminalBars } from './format.ts';
export type { Chart, ChartAxis, Page, Section, Unit } from './page.ts';
