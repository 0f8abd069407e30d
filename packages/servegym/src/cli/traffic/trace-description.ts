import { alignedRows, terminalBars } from '@servegym/operators/report';
import type { LengthSummary, TraceDescription, TraceReading } from '@servegym/simulator';
import { facts, snakeCase } from '../output/print-result.ts';

const PLOT_ROWS = 6;

/** The object that `traffic describe --json` prints. Rates in requests/s, lengths in tokens; `null` where undefined. */
export function traceDescriptionJson(file: string, reading: TraceReading, description: TraceDescription) {
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

/** Text of `traffic describe`, below the line about the columns. */
export function traceDescriptionText(description: TraceDescription): string {
  const { durationS, rate, inputTokensPerS, outputTokensPerS, windows, odd, rateOverTime } = description;
  const burst = windows.map(
    ({ windowS, peakRate, dispersion }) =>
      `  busiest ${duration(windowS).padEnd(6)} ${figure(peakRate).padStart(8)} requests/s, dispersion ${figure(dispersion)}`,
  );
  const shared = description.sharedPrefix;
  return [
    ...facts([
      ['duration', duration(durationS)],
      [
        'rate',
        `${figure(rate)} requests/s, ${figure(inputTokensPerS)} prompt and ${figure(outputTokensPerS)} output tokens/s`,
      ],
      [
        'gaps',
        `variation ${figure(description.gapVariation)} (1 for a Poisson process), the longest ${duration(description.longestGapS)}`,
      ],
    ]),
    ...burst,
    ...facts([
      [
        'prefixes',
        shared === null ? undefined : `${(100 * shared).toFixed(1)} % of the prompt tokens seen before`,
      ],
    ]),
    '',
    ...alignedRows([
      ['tokens', 'mean', 'p10', 'p50', 'p90', 'p99', 'max'],
      lengthRow('prompt', description.input),
      lengthRow('output', description.output),
    ]),
    `correlation of the two: ${figure(description.lengthCorrelation)}`,
    ...(rateOverTime.length === 0
      ? []
      : [
          '',
          `requests/s over ${duration(durationS)}`,
          ...terminalBars(rateOverTime, { rows: PLOT_ROWS, label: figure }),
        ]),
    '',
    ...(odd.length === 0 ? ['nothing odd'] : ['odd:', ...odd.map((sentence) => `- ${sentence}`)]),
  ].join('\n');
}

function lengthRow(name: string, { mean, p10, p50, p90, p99, max }: LengthSummary): string[] {
  return [
    name,
    ...[mean, p10, p50, p90, p99, max].map((tokens) => Math.round(tokens).toLocaleString('en-US')),
  ];
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
