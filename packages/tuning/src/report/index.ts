export { escapeText, lineChartSvg, px, tickStep } from './line-chart.ts';
export { alignedRows, terminalBars } from './terminal.ts';
export { tunePage } from './tune-page.ts';
export { frontSvg } from './tune-plots.ts';
export { tuneJson, tuneReport } from './tune-report.ts';
