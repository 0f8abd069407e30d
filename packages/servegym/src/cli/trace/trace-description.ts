import { alignedRows, terminalBars } from '@servegym/operators/report';
import type { LengthSummary, TraceDescription, TraceReading } from '@servegym/simulator';

const PLOT_ROWS = 6;

/** The object that `trace describe --json` prints. Rates in requests/s, lengths in tokens; `null` where undefined. */
export function traceDescriptionJson(file: string, reading: TraceReading, description: TraceDescription) {
  return {
    file,
    format: reading.format,
    columns: reading.columns,
    arrival_unit: reading.arrivalUnit,
    unanswered: reading.unanswered,
    out_of_order: reading.outOfOrder,
    requests: description.requests,
    duration_s: description.durationS,
    requests_per_s: description.rate,
    input_tokens_per_s: description.inputTokensPerS,
    output_tokens_per_s: description.outputTokensPerS,
    gap_variation: description.gapVariation,
    longest_gap_s: description.longestGapS,
    windows: description.windows.map(({ windowS, peakRate, dispersion }) => ({
      window_s: windowS,
      peak_requests_per_s: peakRate,
      dispersion,
    })),
    input_tokens: description.input,
    output_tokens: description.output,
    length_correlation: description.lengthCorrelation,
    shared_prefix: description.sharedPrefix,
    requests_per_s_over_time: description.rateOverTime,
    odd: description.odd,
  };
}

/** Text of `trace describe`, below the line about the columns. */
export function traceDescriptionText(description: TraceDescription): string {
  const { durationS, rate, inputTokensPerS, outputTokensPerS, windows, odd, rateOverTime } = description;
  const burst = windows.map(
    ({ windowS, peakRate, dispersion }) =>
      `  busiest ${duration(windowS).padEnd(6)} ${figure(peakRate).padStart(8)} requests/s, dispersion ${figure(dispersion)}`,
  );
  const shared = description.sharedPrefix;
  return [
    `duration     ${duration(durationS)}`,
    `rate         ${figure(rate)} requests/s, ${figure(inputTokensPerS)} prompt and ${figure(outputTokensPerS)} output tokens/s`,
    `gaps         variation ${figure(description.gapVariation)} (1 for a Poisson process), the longest ${duration(description.longestGapS)}`,
    ...burst,
    ...(shared === null
      ? []
      : [`prefixes     ${(100 * shared).toFixed(1)} % of the prompt tokens seen before`]),
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
