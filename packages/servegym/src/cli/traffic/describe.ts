import { PUBLIC_WORKLOAD_IDS, publicWorkload } from '@servegym/environments';
import { snakeCase, terminalBars } from '@servegym/operators/report';
import {
  describeTrace,
  type LengthSummary,
  type TraceDescription,
  type TraceReading,
} from '@servegym/simulator';
import { openTraffic, readingLine, readTraffic, trafficOptions, trafficWord } from '../arguments/traffic.ts';
import { defineCommand } from '../command-table.ts';
import { type Column, facts, printResult, table } from '../output/print-result.ts';
import { trafficTable } from './fit.ts';

/** `servegym traffic describe`: rates, bursts and lengths of a traffic; without one, the models that can be drawn. */
export const describeCommand = () =>
  defineCommand({
    name: 'describe',
    description:
      'print rates, bursts, lengths and oddities of a traffic; without one, the models and their distance to their traces',
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
      const name = isFile ? traffic.file : trace.source;
      printResult(json, describeTrace(trace), {
        json: (description) => traceDescriptionJson(name, reading, description),
        text: (description) =>
          `${readingLine(name, reading, trace.arrivalMs.length)}\n\n${descriptionText(description)}`,
      });
    },
  });

/** How drawn traffic was read. */
const DRAWN: TraceReading = {
  ...{ format: 'drawn', columns: {}, arrivalUnit: 'ms', unanswered: 0, outOfOrder: 0 },
};

const PLOT_ROWS = 6;

/** The object that `traffic describe --json` prints. Rates in requests/s, lengths in tokens; `null` where undefined. */
function traceDescriptionJson(file: string, reading: TraceReading, description: TraceDescription) {
  const { format, columns, arrivalUnit, unanswered, outOfOrder } = reading;
  const { requests, durationS, rate, inputTokensPerS, outputTokensPerS, ...rest } = description;
  const { gapVariation, longestGapS, windows, input, output, lengthCorrelation, sharedPrefix } = rest;
  return snakeCase({
    ...{ file, format, columns, arrivalUnit, unanswered, outOfOrder, requests, durationS },
    ...{ requestsPerS: rate, inputTokensPerS, outputTokensPerS, gapVariation, longestGapS },
    windows: windows.map(({ windowS, peakRate, dispersion }) => ({
      ...{ windowS, peakRequestsPerS: peakRate, dispersion },
    })),
    ...{ inputTokens: input, outputTokens: output, lengthCorrelation, sharedPrefix },
    ...{ requestsPerSOverTime: rest.rateOverTime, odd: rest.odd },
  });
}

const LENGTHS = ['mean', 'p10', 'p50', 'p90', 'p99', 'max'] as const;
type Lengths = readonly [name: string, summary: LengthSummary];

/** Text of `traffic describe`, below the line about the columns. */
function descriptionText(description: TraceDescription): string {
  const { durationS, rate, inputTokensPerS, outputTokensPerS, windows, odd, rateOverTime } = description;
  const { gapVariation, longestGapS, sharedPrefix: shared, input, output } = description;
  const chart = terminalBars(rateOverTime, { rows: PLOT_ROWS, label: figure });
  return [
    ...facts([
      ['duration', duration(durationS)],
      [
        'rate',
        `${figure(rate)} requests/s, ${figure(inputTokensPerS)} prompt and ${figure(outputTokensPerS)} output tokens/s`,
      ],
      [
        'gaps',
        `variation ${figure(gapVariation)} (1 for a Poisson process), the longest ${duration(longestGapS)}`,
      ],
    ]),
    ...windows.map(
      ({ windowS, peakRate, dispersion }) =>
        `  busiest ${duration(windowS).padEnd(6)} ${figure(peakRate).padStart(8)} requests/s, dispersion ${figure(dispersion)}`,
    ),
    ...facts([
      [
        'prefixes',
        shared === null ? null : `${(100 * shared).toFixed(1)} % of the prompt tokens seen before`,
      ],
    ]),
    '',
    ...table<Lengths>(
      [
        ['prompt', input],
        ['output', output],
      ],
      [
        ['tokens', ([name]) => name],
        ...LENGTHS.map(
          (key): Column<Lengths> => [key, ([, summary]) => Math.round(summary[key]).toLocaleString('en-US')],
        ),
      ],
    ),
    `correlation of the two: ${figure(description.lengthCorrelation)}`,
    ...(rateOverTime.length === 0 ? [] : ['', `requests/s over ${duration(durationS)}`, ...chart]),
    '',
    ...(odd.length === 0 ? ['nothing odd'] : ['odd:', ...odd.map((sentence) => `- ${sentence}`)]),
  ].join('\n');
}

function figure(value: number): string {
  if (Number.isNaN(value)) return '-';
  return Math.abs(value) >= 1000
    ? Math.round(value).toLocaleString('en-US')
    : String(Number(value.toPrecision(3)));
}

function duration(s: number): string {
  if (s < 100) return `${figure(s)} s`;
  return s < 7200 ? `${figure(s / 60)} min` : `${figure(s / 3600)} h`;
}
