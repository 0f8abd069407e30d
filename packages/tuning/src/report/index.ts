export { alignedRows } from './aligned-rows.ts';
export { lineChartSvg } from './line-chart.ts';
export { escapeText, px, tickStep } from './svg.ts';
export { terminalBars } from './terminal-bars.ts';
export { tunePage } from './tune-page.ts';
export { frontSvg } from './tune-plots.ts';
export { tuneJson, tuneReport } from './tune-report.ts';
