import { counted } from '@servegym/simulator';
import { type Deployment, refusedText } from '../deployment/deployment.ts';
import {
  type ComparedFigure,
  type DeploymentDiff,
  diffAnswer,
  diffJson,
  type MeasuredDiff,
} from '../diff/compare-deployments.ts';
import { candidateText, vllmDefaults } from '../search/candidate.ts';
import { alignedRows, figure, linesIf, percent } from './format.ts';
import { intervalText } from './result.ts';

type Diff = DeploymentDiff | MeasuredDiff;

/** How a result of `diff` is written. */
export const diffResult = { json: diffJson, text: diffText, markdown: diffMarkdown, answer: diffAnswer };

function diffText(diff: Diff): string {
  return [
    ...headLines(diff),
    '',
    diff.verdict,
    '',
    ...alignedRows([HEAD, ...rows(diff)]),
    '',
    ...noteLines(diff),
  ].join('\n');
}

/** The same as Markdown, for a comment on a pull request. */
function diffMarkdown(diff: Diff): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    `**${diff.verdict}**`,
    '',
    line(HEAD.map((name) => name || ' ')),
    line(HEAD.map((_, i) => (i === 0 ? '---' : '---:'))),
    ...rows(diff).map(line),
    '',
    ...[...headLines(diff), ...noteLines(diff)].map((text) => `- ${text}`),
  ].join('\n');
}

const HEAD = ['', 'baseline', 'candidate', 'change', '95 % interval', 'verdict'];

function headLines(diff: Diff): string[] {
  const { trace, requests } = diff;
  if (!('usdPerHour' in diff))
    return (['baseline', 'candidate'] as const).map((side) => {
      const { name, requests: answered, failed } = diff[side];
      return `${side}: ${name}, ${counted(answered, 'request')} measured, ${failed} failed`;
    });
  const { baseline, candidate } = diff;
  return [
    `${trace}: ${counted(requests, 'request')}`,
    `baseline: ${deployedText(baseline)}`,
    `candidate: ${deployedText(candidate)}`,
  ];
}

function deployedText({ name, profile, settings, engines }: Deployment): string {
  const defaults = vllmDefaults(profile);
  const { weights } = defaults;
  return `${name === 'baseline' || name === 'candidate' ? '' : `${name}: `}${engines} × ${profile.name}, ${settings.weights}; ${candidateText({ ...settings, weights }, defaults)}`;
}

function rows(diff: Diff): string[][] {
  const { bounds, figures } = diff;
  const latencies = [
    ...bounds.map((each) => row(each, each.bound)),
    ...figures.map((each) => row(each, each.verdict, each.name.startsWith('requests') ? percent : undefined)),
  ];
  if (!('usdPerHour' in diff)) return latencies;
  const { baseline, candidate } = diff.usdPerHour;
  const changed = baseline === 0 ? '-' : change(candidate / baseline);
  const verdict = baseline === candidate ? 'the same' : candidate < baseline ? 'better' : 'worse';
  return [...latencies, ['USD an hour', figure(baseline), figure(candidate), changed, '', verdict]];
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

function noteLines(diff: Diff): string[] {
  if (!('usdPerHour' in diff))
    return [
      'Intervals: 95 % over stretches of the requests in order of arrival. Measure each side twice to see what chance changes.',
    ];
  const { baseline, candidate, profileError } = diff;
  const left = (
    [
      ['baseline', baseline],
      ['candidate', candidate],
    ] as const
  ).flatMap(([name, { notSimulated, refused, version, evidence }]) => [
    ...linesIf(evidence !== undefined, `${name}${version === undefined ? '' : `, ${version}`}: ${evidence}`),
    ...linesIf(notSimulated.length > 0, `${name}, not simulated: ${notSimulated.join('; ')}`),
    ...(refused === undefined
      ? []
      : [`${name}: ${refusedText(refused)}. Figures are of requests that both take.`]),
  ]);
  const shared =
    baseline.version === candidate.version
      ? 'one profile: its error is in both'
      : 'kernel times of one GPU: their error is taken to be in both';
  return [
    ...left,
    'Intervals: 95 % over stretches of the traffic, the same for both.',
    profileError === 0
      ? `Both take their times from ${shared}, and only widens what is said of bounds.`
      : `Profiles or engines differ: their error, ${percent(profileError)}, widens the intervals.`,
  ];
}
