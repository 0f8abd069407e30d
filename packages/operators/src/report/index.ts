export { diffJson, diffMarkdown, diffReport } from './diff-report.ts';
export { kubernetesManifest } from './kubernetes-manifest.ts';
export { fleetPlanJson, planJson, planPageData, planReport, plansSoFarText } from './plan-report.ts';
export { escapeText, horizontalGrid, px, scaleFromZero, svgDocument, tickLabels } from './svg-chart.ts';
export { alignedRows, terminalBars } from './terminal.ts';
export { bestSoFarText, tuneJson, tunePageData, tuneReport } from './tune-report.ts';
