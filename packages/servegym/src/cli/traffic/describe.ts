import { type FittedWorkload, PUBLIC_WORKLOAD_IDS, publicWorkload } from '@servegym/environments';
import { figure, percent, snakeCase, terminalBars } from '@servegym/operators/report';
import {
  describeTrace,
  type LengthSummary,
  type TraceDescription,
  type TraceReading,
} from '@servegym/simulator';
import { openTraffic, readingLine, readTraffic, trafficOptions, trafficWord } from '../arguments/traffic.ts';
import { defineCommand } from '../command-table.ts';
import { type Column, facts, printResult, table } from '../output/print-result.ts';

export const describeCommand = () =>
  defineCommand({
    words: { traffic: { ...trafficWord.traffic, value: '[traffic]' } },
    options: { seed: trafficOptions.seed, json: { help: 'print one JSON object' } },
    after: `Examples:
  servegym traffic describe AzureLLMInferenceTrace_conv.csv
  servegym traffic describe agents@2/s,30m`,
    async action({ traffic, seed, json }) {
      if (traffic === undefined)
        return printResult(json, PUBLIC_WORKLOAD_IDS.map(publicWorkload), { text: trafficTable });
      const isFile = traffic.kind === 'file';
      const { trace, reading } = isFile
        ? await readTraffic(traffic.file)
        : { ...(await openTraffic(traffic, { seed })), reading: DRAWN };
      const { format, columns, arrivalUnit, unanswered, outOfOrder } = reading;
      const read = { format, columns, arrivalUnit, unanswered, outOfOrder };
      const name = isFile ? traffic.file : trace.source;
      printResult(json, describeTrace(trace), {
        json: (description) => snakeCase({ file: name, ...read, ...description }),
        text: (description) =>
          `${readingLine(name, reading, trace.arrivalMs.length)}\n\n${descriptionText(description)}`,
      });
    },
  });

const DRAWN: TraceReading = { format: 'drawn', columns: {}, arrivalUnit: 'ms', unanswered: 0, outOfOrder: 0 };

const PLOT_ROWS = 6;

const LENGTHS = ['mean', 'p10', 'p50', 'p90', 'p99', 'max'] as const;
type Lengths = readonly [name: string, summary: LengthSummary];

/** Text of `traffic describe`, below the line about the columns. */
function descriptionText(description: TraceDescription): string {
  const { durationS, requestsPerS, inputTokensPerS, outputTokensPerS, windows, odd } = description;
  const { gapVariation, longestGapS, sharedPrefix: shared, requestsPerSOverTime: rates } = description;
  const tokens = `${figure(inputTokensPerS)} prompt and ${figure(outputTokensPerS)} output tokens/s`;
  const chart = terminalBars(rates, { rows: PLOT_ROWS, label: figure });
  return [
    ...facts([
      ['duration', duration(durationS)],
      ['rate', `${figure(requestsPerS)} requests/s, ${tokens}`],
      [
        'gaps',
        `variation ${figure(gapVariation)} (1 for a Poisson process), the longest ${duration(longestGapS)}`,
      ],
    ]),
    ...windows.map(
      ({ windowS, peakRequestsPerS, dispersion }) =>
        `  busiest ${duration(windowS).padEnd(6)} ${figure(peakRequestsPerS).padStart(8)} requests/s, dispersion ${figure(dispersion)}`,
    ),
    ...facts([['prefixes', shared === null ? null : `${percent(shared)} of the prompt tokens seen before`]]),
    '',
    ...table<Lengths>(
      [
        ['prompt', description.inputTokens],
        ['output', description.outputTokens],
      ],
      [
        ['tokens', ([name]) => name],
        ...LENGTHS.map(
          (key): Column<Lengths> => [key, ([, summary]) => Math.round(summary[key]).toLocaleString('en-US')],
        ),
      ],
    ),
    `correlation of the two: ${figure(description.lengthCorrelation)}`,
    ...(rates.length === 0 ? [] : ['', `requests/s over ${duration(durationS)}`, ...chart]),
    '',
    ...(odd.length === 0 ? ['nothing odd'] : ['odd:', ...odd.map((sentence) => `- ${sentence}`)]),
  ].join('\n');
}

function duration(s: number): string {
  if (s < 100) return `${figure(s)} s`;
  return s < 7200 ? `${figure(s / 60)} min` : `${figure(s / 3600)} h`;
}

function trafficTable(models: readonly FittedWorkload[]): string {
  const name = ({ id }: FittedWorkload) => id;
  const distance = (heading: string, of: (fit: FittedWorkload['fit']) => number) =>
    [heading, ({ fit }: FittedWorkload) => of(fit).toFixed(3)] as const;
  const scales = [...new Set(models.flatMap(({ fit }) => fit.dispersion.map(({ seconds }) => seconds)))];
  return [
    ...table(models, [
      ['traffic', name],
      ['requests', ({ requests }) => `${requests}`],
      ['rate /s', ({ arrivals }) => arrivals.perSecond.toFixed(2)],
      ['prompt p50', ({ lengths }) => quantile(lengths, lengths.input, 0.5)],
      ['p99', ({ lengths }) => quantile(lengths, lengths.input, 0.99)],
      ['output p50', ({ lengths }) => quantile(lengths, lengths.output, 0.5)],
      ['p99', ({ lengths }) => quantile(lengths, lengths.output, 0.99)],
      ['shared prefix', ({ prefixes: p }) => (p === null ? '-' : `${(100 * p.cacheableShare).toFixed(0)} %`)],
    ]),
    '',
    ...table(models, [
      ['KS distance', name],
      distance('prompt', ({ ks }) => ks.input),
      distance('held out', ({ heldOut }) => heldOut.input),
      distance('of halves', ({ heldOut }) => heldOut.halvesInput),
      distance('output', ({ ks }) => ks.output),
      distance('held out', ({ heldOut }) => heldOut.output),
      distance('of halves', ({ heldOut }) => heldOut.halvesOutput),
      distance('counts', ({ ks }) => ks.counts),
      distance('gaps', ({ ks }) => ks.gaps),
    ]),
    '',
    ...table(models, [
      ['variance / mean of arrivals, trace | model', name],
      ...scales.map((scale): Column<FittedWorkload> => {
        const dispersion = ({ fit }: FittedWorkload) => {
          const at = fit.dispersion.find(({ seconds }) => seconds === scale);
          return at === undefined ? '-' : `${at.trace.toPrecision(3)} | ${at.model.toPrecision(3)}`;
        };
        return [`${scale} s`, dispersion];
      }),
    ]),
  ].join('\n');
}

function quantile(
  { probabilities }: FittedWorkload['lengths'],
  quantiles: readonly number[],
  probability: number,
) {
  const distances = probabilities.map((p) => Math.abs(p - probability));
  return `${quantiles[distances.indexOf(Math.min(...distances))]}`;
}
