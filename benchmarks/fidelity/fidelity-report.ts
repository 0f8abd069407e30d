import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Chart, chartSvg } from '@servegym/operators/report';
import { LATENCIES } from '../../packages/profiles/src/fits/served-load.ts';
import { median, table } from '../harness.ts';
import { errorPercent, type Fidelity } from './assess-fidelity.ts';
import { campaignRows } from './campaigns.ts';
import type { contributedErrors } from './contributed.ts';
import {
  assumptionGroups,
  nearestErrors,
  type PointErrors,
  type PointRow,
  pointGroups,
} from './operating-points.ts';

const NAMES: Readonly<Record<(typeof LATENCIES)[number], string>> = {
  ttftMean: 'TTFT mean',
  ttftP99: 'TTFT p99',
  itlMean: 'ITL mean',
  e2eMean: 'E2E mean',
};
const ENGINES = { vllm: 'vLLM', sglang: 'SGLang' } as const;

export function fidelityReport(
  { staticBatches, quantized, replay, servedLoads, recordedLoads, speculation }: Fidelity,
  points: readonly PointRow[] | null = null,
  contributed: ReturnType<typeof contributedErrors> = [],
): string {
  const names = LATENCIES.map((what) => NAMES[what]);
  return filled('fidelity.md', {
    pointsOptions: points === null ? '' : ' --tables aiconfigurator_core --answers answers.jsonl',
    staticBatches: table(
      ['profile', 'rows', 'mean', 'worst', 'overflowing batch'],
      staticBatches.map(({ profile, rows, leftOutMean, leftOutWorst, overflowing }) => [
        ...[`\`${profile}\``, `${rows}`, plain(leftOutMean), plain(leftOutWorst)],
        overflowing.map(signed).join(', ') || '-',
      ]),
    ),
    staticRows: sum(staticBatches.map(({ rows }) => rows)),
    staticMean: meanOf(staticBatches),
    quantized: table(
      ['profile', 'weights', 'rows', 'mean', 'worst'],
      quantized.map(({ profile, weights, rows, leftOutMean, leftOutWorst }) => [
        ...[`\`${profile}\``, weights, `${rows}`, plain(leftOutMean), plain(leftOutWorst)],
      ]),
    ),
    quantizedRows: sum(quantized.map(({ rows }) => rows)),
    quantizedMean: meanOf(quantized),
    requests: replay.requests,
    preemptions: replay.preemptions,
    replay: table(
      ['TTFT mean', 'TTFT p99', 'TPOT mean', 'end to end mean', 'end to end p99', 'makespan'],
      [
        (['ttftMean', 'ttftP99', 'tpotMean', 'e2eMean', 'e2eP99', 'makespan'] as const).map((what) =>
          signed(replay[what]),
        ),
      ],
    ),
    loads: servedLoads.length,
    servedLoads: table(
      ['run', 'model', 'GPUs', ...names, ...names.map((name) => `left out: ${name}`)],
      servedLoads.map((load) => [
        ...[load.run, load.model, load.gpus],
        ...[load, load.leftOut].flatMap((errors) => LATENCIES.map((what) => signed(errors[what]))),
      ]),
    ),
    medians: table(
      ['loads', 'count', ...names],
      [...new Set(servedLoads.map(({ group }) => group)), 'all'].map((group) => {
        const loads = servedLoads.filter((load) => group === 'all' || load.group === group);
        const middle = (what: (typeof LATENCIES)[number]) =>
          plain(median(loads.map(({ leftOut }) => Math.abs(leftOut[what]))));
        return [group, `${loads.length}`, ...LATENCIES.map((what) => `**${middle(what)}**`)];
      }),
    ),
    recordedLoads: table(
      ['load', 'requests', 'TTFT', 'end to end'],
      recordedLoads.map(({ name, requests, ttft, e2e }) => [
        ...[`\`${name}\``, `${requests}`, plain(ttft), plain(e2e)],
      ]),
    ),
    speculation: table(
      ['batch', 'simulated', 'measured', 'error'],
      speculation.map(({ batch, simulated, measured }) => [
        ...[`${batch}`, `${simulated.toFixed(2)}x`],
        ...(measured ? [`${measured.toFixed(2)}x`, signed(errorPercent(simulated, measured))] : ['-', '-']),
      ]),
    ),
    points: points === null ? '' : `${pointsReport(points)}\n`,
    contributed: contributed.length === 0 ? 'None yet.' : contributedTable(contributed),
  });
}

/** Measurements that were given, by server, in Markdown. */
export function contributedTable(contributed: ReturnType<typeof contributedErrors>): string {
  const names = ['ttft', 'tpot', 'e2e'] as const;
  const servers = Map.groupBy(
    contributed,
    ({ profile, status, command, source }) =>
      `\`${command}\`, profile \`${profile}\` (${status}). Source: ${source}.`,
  );
  return [...servers]
    .map(([server, loads]) => {
      const theirErrors = (['ttft', 'tpot'] as const).map((name) =>
        loads.map(({ theirs, measuredMs }) =>
          theirs === undefined || 'error' in theirs
            ? Number.NaN
            : 100 * (theirs[`${name}Ms`] / measuredMs[name].mean - 1),
        ),
      );
      const rows = loads.map(({ load, requests, measuredMs, errors }, i) => [
        ...[load, `${requests}`],
        ...names.flatMap((name) => [
          `${Number(measuredMs[name].mean.toPrecision(4))}`,
          signed(errors[name].mean),
        ]),
        ...theirErrors.map((each) => (Number.isFinite(each[i]) ? signed(each[i]) : '-')),
      ]);
      const middleOf = (errors: readonly number[]) => {
        const known = errors.filter(Number.isFinite).map(Math.abs);
        return known.length === 0 ? '-' : plain(median(known));
      };
      const middle = names.flatMap((name) => ['', middleOf(loads.map(({ errors }) => errors[name].mean))]);
      const head = [
        ...['load, tokens in + out', 'requests'],
        ...names.flatMap((name) => [`${name.toUpperCase()} mean, ms`, 'error']),
        ...['aiconfigurator: TTFT', 'TPOT'],
      ];
      const last = ['median of absolute errors', '', ...middle, ...theirErrors.map(middleOf)];
      return `${server}\n\n${table(head, [...rows, last])}`;
    })
    .join('\n\n');
}

/** TPOT of operating points as predicted with their campaign left out, over the measured one, as an SVG. */
export function pointsChart(rows: readonly PointRow[]): string {
  const looks = { vllm: 'first', sglang: 'second' } as const;
  const dots = rows.flatMap(({ point, ours, refitted }) => {
    const answer = refitted?.campaign ?? ours;
    if ('error' in answer) return [];
    const title = `${point.model}, ${point.system}, ${point.concurrency} in flight`;
    return [{ x: point.tpotMs, y: answer.tpotMs, look: looks[point.engine], radius: 2, title }];
  });
  const axis = { domain: [2, 200], logarithmic: true } as const;
  const chart: Chart = {
    label: 'Predicted over measured TPOT of public operating points, campaign left out',
    x: { title: 'measured TPOT, ms', ...axis },
    y: { title: 'predicted, ms', ...axis },
    lines: [{ look: 'faint', points: axis.domain.map((ms) => [ms, ms] as const) }],
    dots,
    legend: (['vllm', 'sglang'] as const).map((engine) => ({ look: looks[engine], text: ENGINES[engine] })),
  };
  return chartSvg(chart, 'TPOT, campaign left out');
}

/** A page of this folder with its figures and tables in place of their names. */
function filled(page: string, figures: Readonly<Record<string, string | number>>): string {
  const text = readFileSync(join(import.meta.dirname, page), 'utf8');
  return text.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => String(figures[name]));
}

function signed(percent: number): string {
  return `${percent < 0 ? '-' : '+'}${plain(Math.abs(percent))}`;
}

function plain(percent: number): string {
  return `${percent.toFixed(1)} %`;
}

/** Mean error over all rows. */
function meanOf(fits: readonly { readonly rows: number; readonly leftOutMean: number }[]): string {
  return plain(
    sum(fits.map(({ rows, leftOutMean }) => rows * leftOutMean)) / sum(fits.map(({ rows }) => rows)),
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

export function pointsReport(rows: readonly PointRow[]): string {
  const engines = Object.entries(ENGINES).flatMap(([engine, name]) => {
    const own = rows.filter(({ point }) => point.engine === engine);
    return own.length === 0 ? [] : [`### ${name}\n\n${groupTable(own)}\n\n${failures(own)}`];
  });
  return filled('operating-points.md', {
    rows: rows.length,
    distinct: new Set(rows.map(({ point: { ttftMs, tpotMs } }) => `${ttftMs} ${tpotMs}`)).size,
    engines: engines.join('\n\n'),
    nearest: errorCells(nearestErrors(rows)).join(' of TPOT and '),
    campaigns: table(['campaign', 'property', 'value', 'evidence'], campaignRows()),
    assumptions: table(
      ['rows of', 'assumption', 'rows', 'TPOT', 'TTFT'],
      assumptionGroups(rows).map(({ group, assumption, rows: count, errors }) => [
        ...[group, assumption, `${count}`, ...errorCells(errors)],
      ]),
    ),
  });
}

function groupTable(own: readonly PointRow[]): string {
  const groups = pointGroups(own);
  const isBeside = groups.some(({ theirs }) => theirs !== null);
  const isFitted = own.some(({ refitted }) => refitted !== null);
  const names = isFitted ? ['campaign left out', 'model left out', 'fitted', 'shipped'] : ['shipped'];
  return table(
    [
      ...['rows of', 'rows', 'failed'],
      ...names.flatMap((name) => [`${name}: TPOT`, 'TTFT']),
      ...['TPOT, median', 'TTFT, median'],
      ...(isBeside ? ['aiconfigurator failed', 'its TPOT', 'its TTFT'] : []),
    ],
    groups.map(({ group, rows, leftOut, fitted, ours, theirs }) => [
      ...[group, `${rows}`, `${ours.failed}`],
      ...(isFitted ? [leftOut.campaign, leftOut.model, fitted, ours] : [ours]).flatMap(errorCells),
      ...[ours.tpotMedian, ours.ttftMedian].map((error) => (error === null ? '-' : signed(error))),
      ...(theirs === null ? [] : [`${theirs.failed}`, ...errorCells(theirs)]),
    ]),
  );
}

function errorCells({ tpot, ttft }: PointErrors): string[] {
  return [tpot, ttft].map((error) => (error === null ? '-' : plain(error)));
}

/** Reasons of rows without an answer, the most frequent first. */
function failures(rows: readonly PointRow[]): string {
  const reasons = rows.flatMap(({ point, ours }) =>
    'error' in ours
      ? [`${point.model.replace(/^.*\//, '')} on ${point.system}: ${shortened(ours.error)}`]
      : [],
  );
  if (reasons.length === 0) return 'Every row has an answer.';
  const listed = [...Map.groupBy(reasons, (reason) => reason)]
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([reason, same]) => `- ${same.length} rows: ${reason}`);
  return `Rows without an answer:\n\n${listed.join('\n')}`;
}

function shortened(reason: string): string {
  const text = reason.replace(/\(.*?\)/, '').replaceAll(/\s+/g, ' ');
  return text.length <= 160 ? text : `${text.slice(0, 160)} ...`;
}
