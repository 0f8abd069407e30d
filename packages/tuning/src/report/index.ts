export { kubernetesManifest } from './kubernetes-manifest.ts';
export { lineChartSvg } from './line-chart.ts';
export { planPage } from './plan-page.ts';
export { planJson, planReport } from './plan-report.ts';
export { escapeText, horizontalGrid, px, scaleFromZero, svgDocument, tickLabels } from './svg-chart.ts';
export { alignedRows, terminalBars } from './terminal.ts';
export { tunePage } from './tune-page.ts';
export { frontSvg } from './tune-plots.ts';
export { bestSoFarText, tuneJson, tuneReport } from './tune-report.ts';
