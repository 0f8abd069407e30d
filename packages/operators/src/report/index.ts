export { escapeText, horizontalGrid, px, scaleFromZero, svgDocument, tickLabels } from './svg-chart.ts';
export { alignedRows, terminalBars } from './terminal.ts';
