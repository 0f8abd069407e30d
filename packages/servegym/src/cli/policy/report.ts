import { type Chart, type Column, type Page, percent, snakeCase, tableOf } from '@servegym/operators/report';
import { type Form, facts, table } from '../output/print-result.ts';
import { type Evaluation, type PolicyTrace, worstOf } from './evaluate-policy.ts';
import { classFigures, combinedScore, scoreDifference, type worstMinute } from './score.ts';
import { titlesOf } from './suite.ts';

type PolicyReport = ReturnType<typeof policyReport>;

/** What `policy evaluate` prints. `secret` is that of test traces, which draws them again. */
export function policyReport(
  { suite, split, file, traces }: Evaluation,
  secret?: string,
  minute?: ReturnType<typeof worstMinute>,
) {
  const sum = (of: (trace: PolicyTrace) => number) => traces.reduce((total, each) => total + of(each), 0);
  const mean = (of: (trace: PolicyTrace) => number) => sum(of) / traces.length;
  const { score, ci95 } = combinedScore(traces.map(({ values }) => values));
  const worst = worstOf(traces);
  const cpuMs = sum((trace) => trace.cpuMs);
  const all = traces.flatMap((trace) => trace.faults);
  const faults = Object.entries(Object.groupBy(all, (fault) => fault.function));
  return {
    ...{ suite, split, policy: file, combinedScore: score, ci95 },
    /** Policies of score 0 and 1. */
    references: titlesOf(suite),
    classes: classFigures(traces.map(({ figures }) => figures)),
    attainment: mean(({ figures }) => figures.attainment),
    goodputRps: mean(({ figures }) => figures.goodputRps),
    usd: sum(({ figures }) => figures.usd),
    fairness: mean(({ figures }) => figures.fairness),
    /**
     * The trace with the least gain over the default, and the second of the first request that missed its objectives. Where
     * asked for, the minute in which most was lost against the default, with the figures of both; `null` where that is none.
     */
    worst: {
      trace: worst.name,
      gain: worst.values.policy - worst.values.default,
      firstViolationS: worst.figures.firstViolationS,
      ...(minute !== undefined && { minute }),
    },
    /** Share of the time that was spent in the policy. */
    policyShare: sum(({ policyMs }) => policyMs) / Math.max(1e-9, cpuMs),
    calls: sum(({ calls }) => calls),
    /** Processor time in which the traces were served, s; without drawing them and without the references. */
    cpuS: cpuMs / 1000,
    /** Answers that could not be used; the default's action was taken instead. */
    faults: faults.map(([name, of = []]) => ({
      ...{ function: name, message: of[0].message, count: of.reduce((total, { count }) => total + count, 0) },
    })),
    traces: traces.map(({ name, seed, values, stopped, figures: { classes: _, value: __, ...figures } }) => ({
      ...{ name, seed, value: values.policy, defaultValue: values.default, bestValue: values.best },
      ...{ ...figures, stopped },
    })),
    ...(secret !== undefined && { secret }),
  };
}

const latency = (ms: number) =>
  Number.isNaN(ms) ? '-' : ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : `${ms.toFixed(ms < 100 ? 1 : 0)} ms`;
const interval = ([low, high]: readonly [number, number]) => `${low.toFixed(3)} to ${high.toFixed(3)}`;
const count = (n: number) => n.toLocaleString('en-US');

/** The worst minute of a policy beside the default; nothing where nobody asked. */
function minuteText(minute: PolicyReport['worst']['minute']): string | undefined {
  if (minute === undefined) return undefined;
  if (minute === null) return 'none in which more was lost than by the default';
  const { fromS, policy, default: standard } = minute;
  const figures = (of: typeof policy) => `${percent(of.attainment)}, TTFT p99 ${latency(of.ttftP99Ms)}`;
  const beside = standard === null ? '' : `; the default: ${figures(standard)}`;
  return `arrivals from second ${fromS} on, ${count(policy.requests)} requests, in objectives ${figures(policy)}${beside}`;
}

const TRACE_COLUMNS: readonly Column<PolicyReport['traces'][number]>[] = [
  ['trace', ({ name }) => name],
  ['value', ({ value }) => value.toFixed(4)],
  ['default', ({ defaultValue }) => defaultValue.toFixed(4)],
  ['best', ({ bestValue }) => bestValue.toFixed(4)],
  ['in objectives', ({ attainment }) => percent(attainment)],
  ['fairness', ({ fairness }) => fairness.toFixed(3)],
  ['first missed', ({ firstViolationS }) => (firstViolationS === null ? '-' : `${firstViolationS} s`)],
];

/** The score, and the worst minute second by second beside the default, as a page. */
export function evaluationPage(report: PolicyReport): Page {
  const { worst, suite, split } = report;
  const { minute } = worst;
  const chartOf = (of: 'waiting' | 'running', title: string): Chart => ({
    label: `${title}, in each second of the minute`,
    x: { title: 'second of the trace', domain: [minute!.fromS, minute!.fromS + 60] },
    y: { title, unit: 'count' },
    lines: (['default', 'policy'] as const).map((name, i) => ({
      look: i === 0 ? 'faint' : 'first',
      points: (minute![name]?.[of] ?? []).map((value, second) => [minute!.fromS + second, value] as const),
    })),
    legend: [
      { look: 'first', text: report.policy },
      { look: 'faint', text: 'the default' },
    ],
  });
  const half = (title: string, chart: Chart) => ({ title, chart, look: 'half' as const });
  const paragraphs = [minuteText(minute ?? null)!, ...report.faults.map(({ message }) => message)];
  return {
    title: `${report.policy} on ${suite}, ${split}`,
    lead: `0 is ${report.references.default}. 1 is ${report.references.best}.`,
    sections: [
      {
        numbers: [
          [report.combinedScore.toFixed(3), 'score'],
          [interval(report.ci95), '95 % interval over the traces'],
          [percent(report.attainment), 'of the requests in objectives'],
        ],
      },
      { title: `The worst minute, on ${worst.trace}`, paragraphs, look: 'heading' },
      ...(minute
        ? [
            half('Waiting', chartOf('waiting', 'requests without a first token')),
            half('Running', chartOf('running', 'requests that get tokens')),
            {
              title: 'Requests that lost most',
              table: tableOf('The requests of the minute that lost most', minute.losers, [
                ['arrival', ({ arrivalS }) => `${arrivalS.toFixed(2)} s`],
                ['class', (each) => each.class],
                ['prompt', ({ promptTokens }) => count(promptTokens)],
                ['output', ({ outputTokens }) => count(outputTokens)],
                ['TTFT', ({ ttftMs }) => latency(ttftMs)],
                ['TTFT, default', ({ defaultTtftMs }) => latency(defaultTtftMs)],
              ]),
            },
          ]
        : []),
      { title: 'Traces', table: tableOf('Values of each trace', report.traces, TRACE_COLUMNS) },
    ],
  };
}

export const evaluationForm: Form<PolicyReport> = {
  json: (report) => snakeCase(report),
  text(report) {
    const { worst, faults, traces, references } = report;
    const requests = traces.reduce((sum, each) => sum + each.requests, 0);
    const score = `${report.combinedScore.toFixed(3)}, 95 % interval ${interval(report.ci95)} over the traces`;
    const lost = `${worst.gain.toFixed(4)} against the default`;
    const spent = `${percent(report.policyShare)} of ${report.cpuS.toFixed(2)} s of processor time`;
    return [
      `${report.policy} on ${report.suite}, ${report.split}: ${traces.length} traces, ${count(requests)} requests`,
      '',
      ...facts([
        ['score', score],
        ['0 is', references.default],
        ['1 is', references.best],
        ['in objectives', `${percent(report.attainment)} of the requests, ${report.goodputRps.toFixed(1)}/s`],
        ['cost', `USD ${report.usd.toFixed(2)}`],
        ['fairness', `${report.fairness.toFixed(3)} (Jain's index over tenants)`],
        [
          'worst trace',
          `${worst.trace}: ${lost}, objectives first missed in second ${worst.firstViolationS ?? '-'}`,
        ],
        ['worst minute', minuteText(worst.minute)],
        ['policy', `${spent}, ${count(report.calls)} calls`],
        ['secret', report.secret],
      ]),
      '',
      ...table(report.classes, [
        ['class', ({ name }) => name],
        ['requests', (each) => count(each.requests)],
        ['refused', (each) => count(each.refused)],
        ['TTFT p50', (each) => latency(each.ttftP50Ms)],
        ['p99', (each) => latency(each.ttftP99Ms)],
        ['TPOT p50', (each) => latency(each.tpotP50Ms)],
        ['p99', (each) => latency(each.tpotP99Ms)],
      ]),
      '',
      ...table(traces, TRACE_COLUMNS),
      '',
      'value: what the answers are worth less the bill, over the price of all requests. A late answer is worth the share',
      'objective / latency of its price.',
      ...faults.map((fault) => `${fault.message}: ${count(fault.count)} times; the default decided instead.`),
      ...traces.flatMap(({ name, stopped }) =>
        stopped === null ? [] : [`${name}: ${stopped}. The default served the trace, which counts as -1.`],
      ),
    ].join('\n');
  },
};

/** Two policies on the same traces; `difference` is the score of the first less that of the second. */
export function comparePolicies(first: Evaluation, second: Evaluation, secret?: string) {
  const [a, b] = [first, second].map(({ traces }) => traces.map(({ values }) => values));
  const { score: difference, ci95 } = scoreDifference(a, b);
  return { policies: [policyReport(first, secret), policyReport(second, secret)], difference, ci95 };
}

export const comparisonForm: Form<ReturnType<typeof comparePolicies>> = {
  json: (comparison) => snakeCase(comparison),
  text({ policies, difference, ci95 }) {
    const [a, b] = policies;
    const verdict =
      ci95[0] > 0 ? `${a.policy} is better` : ci95[1] < 0 ? `${b.policy} is better` : 'too close to tell';
    return [
      `${a.suite}, ${a.split}: the same ${a.traces.length} traces`,
      '',
      ...table(policies, [
        ['policy', ({ policy }) => policy],
        ['score', ({ combinedScore }) => combinedScore.toFixed(3)],
        ['95 %', (each) => interval(each.ci95)],
        ['in objectives', ({ attainment }) => percent(attainment)],
        ['TTFT p99', ({ classes }) => latency(classes[0].ttftP99Ms)],
        ['TPOT p99', ({ classes }) => latency(classes[0].tpotP99Ms)],
        ['USD', ({ usd }) => usd.toFixed(2)],
      ]),
      '',
      `difference ${difference.toFixed(3)}, 95 % interval ${interval(ci95)}: ${verdict}`,
    ].join('\n');
  },
};

/** What a search found: the policy with its numbers beside the one that it began with, on the validation traces. */
export const searchForm: Form<{
  readonly parameters: Readonly<Record<string, number>>;
  readonly trainScore: number;
  readonly generations: readonly object[];
  readonly validation: ReturnType<typeof comparePolicies>;
}> = {
  json: (found) => ({ ...snakeCase({ ...found, parameters: undefined }), parameters: found.parameters }),
  text: ({ parameters, trainScore, validation }) =>
    [
      ...facts(Object.entries(parameters).map(([name, value]) => [name, String(value)])),
      '',
      `score on the training traces ${trainScore.toFixed(3)}; found, and before, on others:`,
      comparisonForm.text(validation),
    ].join('\n'),
};
