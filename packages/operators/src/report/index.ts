export { snakeCase } from './snake-case.ts';
export { escapeText, horizontalGrid, px, scaleFromZero, svgDocument, tickLabels } from './svg-chart.ts';
export { alignedRows, terminalBars } from './terminal.ts';
