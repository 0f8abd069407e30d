import type { Deployment } from '../deployment/deployment.ts';
import type { ComparedFigure, DeploymentDiff } from '../diff/compare-deployments.ts';
import { candidateText, vllmDefaults } from '../tune/candidate.ts';
import { alignedRows } from './terminal.ts';
import { figure, intervalText, percent } from './tune-figures.ts';

/** Text of `diff` without `--json`. */
export function diffReport(diff: DeploymentDiff): string {
  return [
    ...headLines(diff),
    '',
    verdictLine(diff),
    '',
    ...alignedRows([HEAD, ...rows(diff)]),
    '',
    ...noteLines(diff),
  ].join('\n');
}

/** The same as Markdown, for a comment on a pull request. */
export function diffMarkdown(diff: DeploymentDiff): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    `**${verdictLine(diff)}**`,
    '',
    line(HEAD.map((name) => name || ' ')),
    line(HEAD.map((_, i) => (i === 0 ? '---' : '---:'))),
    ...rows(diff).map(line),
    '',
    ...[...headLines(diff), ...noteLines(diff)].map((text) => `- ${text}`),
  ].join('\n');
}

const HEAD = ['', 'baseline', 'candidate', 'change', '95 % interval', 'verdict'];

function headLines({ source, requests, baseline, candidate }: DeploymentDiff): string[] {
  return [
    `${source}: ${requests.toLocaleString('en-US')} requests`,
    `baseline: ${deployedText(baseline)}`,
    `candidate: ${deployedText(candidate)}`,
  ];
}

function deployedText({ name, profile, settings, engines }: Deployment): string {
  return `${name === 'baseline' || name === 'candidate' ? '' : `${name}: `}${engines} × ${profile.name}, ${settings.weights}; ${candidateText({ ...settings, weights: 'FP16' }, vllmDefaults(profile))}`;
}

/** Summary of the comparison. */
function verdictLine({ bounds, figures }: DeploymentDiff): string {
  const of = (verdict: string) => bounds.filter(({ bound }) => bound === verdict).map(({ name }) => name);
  const worse = bounds.filter(({ bound, verdict }) => bound === 'broken' && verdict === 'worse');
  const parts = [
    ['breaks', of('breaks')],
    ['was broken and gets worse', worse.map(({ name }) => name)],
    ['cannot be told', of('too close to tell')],
    ['mends', of('mends')],
    ['broken before and after', of('broken').filter((name) => !worse.some((each) => each.name === name))],
  ] as const;
  const said = parts
    .filter(([, names]) => names.length > 0)
    .map(([verb, names]) => `${verb}: ${names.join(', ')}`);
  if (said.length > 0) return said.join('. ');
  const changed = figures.filter(({ verdict }) => verdict !== 'too close to tell');
  return changed.length === 0
    ? 'every bound holds, and no difference can be told'
    : `every bound holds; ${changed.map(({ name, verdict }) => `${name} ${verdict}`).join(', ')}`;
}

function rows({ bounds, figures, usdPerHour }: DeploymentDiff): string[][] {
  const { baseline, candidate } = usdPerHour;
  return [
    ...bounds.map((each) => row(each, each.bound)),
    ...figures.map((each) => row(each, each.verdict, each.name.startsWith('requests') ? percent : undefined)),
    [
      'USD an hour',
      figure(baseline),
      figure(candidate),
      baseline === 0 ? '-' : change(candidate / baseline),
      '',
      baseline === candidate ? 'the same' : candidate < baseline ? 'better' : 'worse',
    ],
  ];
}

function row(
  { name, baseline, candidate, ratio, interval }: ComparedFigure,
  verdict: string,
  text: (value: number) => string = (value) => `${figure(value)} ms`,
): string[] {
  return [name, text(baseline), text(candidate), change(ratio), `x${intervalText(interval)}`, verdict];
}

function change(ratio: number): string {
  const share = 100 * (ratio - 1);
  if (share === 0) return '0 %';
  return Number.isFinite(share) ? `${share < 0 ? '−' : '+'}${figure(Math.abs(share))} %` : '-';
}

function noteLines({ baseline, candidate, profileError }: DeploymentDiff): string[] {
  const left = (
    [
      ['baseline', baseline],
      ['candidate', candidate],
    ] as const
  ).flatMap(([name, { notSimulated }]) =>
    notSimulated.length === 0 ? [] : [`${name}, not simulated: ${notSimulated.join(', ')}`],
  );
  return [
    ...left,
    'Intervals: 95 % over stretches of the traffic, the same for both.',
    ...(profileError === 0
      ? [
          'Both take their times from one profile: its error is in both, and only widens what is said of bounds.',
        ]
      : [`The profiles differ: their error, ${percent(profileError)}, widens the intervals.`]),
  ];
}

/** The object that `diff --json` prints. Latencies in ms. */
export function diffJson(diff: DeploymentDiff) {
  const figureJson = ({ name, baseline, candidate, ratio, interval, verdict }: ComparedFigure) => ({
    ...{ name, baseline, candidate, ratio, interval, verdict },
  });
  const deployedJson = ({ name, profile, engines, notSimulated }: Deployment) => ({
    ...{ name, profile: profile.name, engines, not_simulated: notSimulated },
  });
  return {
    trace: diff.source,
    requests: diff.requests,
    baseline: deployedJson(diff.baseline),
    candidate: deployedJson(diff.candidate),
    bounds: diff.bounds.map((each) => ({ ...figureJson(each), limit_ms: each.limitMs, bound: each.bound })),
    figures: diff.figures.map(figureJson),
    usd_per_hour: diff.usdPerHour,
    profile_error: diff.profileError,
    verdict: verdictLine(diff),
  };
}
