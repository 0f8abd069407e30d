import { escapeText } from './svg-chart.ts';
import type { PlotColours } from './tune-plots.ts';

export const PAGE_COLOURS: PlotColours = {
  ink: 'var(--ink)',
  faint: 'var(--faint)',
  grid: 'var(--grid)',
  paper: 'var(--paper)',
  first: 'var(--first)',
  second: 'var(--second)',
  warning: 'var(--warning)',
};

const STYLE = `
:root { --ink: #16202c; --faint: #5b6773; --grid: #e3e8ee; --paper: #fff; --desk: #f4f6f9; --first: #0b6bcb; --second: #b4540a; --warning: #c02f3f; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf5; --faint: #93a1b1; --grid: #2a3543; --paper: #161d27; --desk: #0e141c; --first: #5aa9ff; --second: #f0a35e; --warning: #ff7b87; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--desk); color: var(--ink); font: 15px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 21px; margin: 40px 0 12px; }
h3 { font-size: 14px; margin: 0 0 10px; color: var(--faint); font-weight: 600; }
.lead { color: var(--faint); margin: 0; }
h2 + .lead + .card { margin-top: 14px; }
.card { background: var(--paper); border: 1px solid var(--grid); border-radius: 12px; padding: 18px 20px; }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 14px; margin: 18px 0; }
.numbers b { display: block; font-size: 27px; line-height: 1.2; letter-spacing: -0.02em; font-variant-numeric: tabular-nums; }
.numbers span { color: var(--faint); font-size: 13px; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(380px, 1fr)); gap: 14px; margin: 14px 0; }
.plots svg { width: 100%; height: auto; display: block; }
.commands { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); gap: 0 24px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14px; }
th { text-align: right; font-weight: 600; color: var(--faint); white-space: nowrap; }
th, td { padding: 7px 8px; border-bottom: 1px solid var(--grid); }
td { text-align: right; white-space: nowrap; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
td:nth-child(2) { white-space: normal; min-width: 200px; }
tr:last-child td { border-bottom: 0; }
tr.winner td { font-weight: 600; }
tr.default td:first-child, tr.default td:nth-child(2) { color: var(--second); }
pre { margin: 0 0 8px; padding: 12px 14px; background: var(--desk); border-radius: 8px; white-space: pre-wrap; word-break: break-word; font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, monospace; }
ul { margin: 6px 0 16px; padding-left: 20px; color: var(--faint); }
p { margin: 0 0 10px; }
.stack > * + * { margin-top: 14px; }
footer { margin-top: 40px; color: var(--faint); font-size: 13px; }
@media (max-width: 480px) { .plots { grid-template-columns: 1fr; } main { padding: 20px 12px 48px; } }
`;

/**
 * A report as one page that needs nothing else, in the light or dark colours of the reader's system.
 * @param lead text below the title
 * @param sections HTML
 * @param foot text at the end
 */
export function reportPage(title: string, lead: string, sections: readonly string[], foot: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeText(title)}</title>
<style>${STYLE}</style>
</head>
<body><main>
<h1>${escapeText(title)}</h1>
<p class="lead">${escapeText(lead)}</p>
${sections.join('\n')}
<footer>
<p>${escapeText(foot)}</p>
</footer>
</main></body>
</html>
`;
}
