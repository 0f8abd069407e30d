import { alignedRows } from '@servegym/operators/report';
import {
  type BenchCalibration,
  coefficientOf,
  coefficientsOf,
  errorPercent,
  type KernelCalibration,
  type StaticBatchCalibration,
  type StaticBatchRow,
} from '@servegym/profiles';
import type { EngineProfile, WeightPrecision } from '@servegym/simulator';

/** Below this share the measurements say too little about a coefficient to call it measured. */
const LEAST_DETERMINED = 0.3;
const PLOT_COLUMNS = 56;
const PLOT_LINES = 16;
/** Points of a plot; more only fill it. */
const MOST_POINTS = 400;

/** JSON of a profile from whole batches. */
export function calibrationJson({ profile, rows, overflowing, determined }: StaticBatchCalibration) {
  return {
    profile,
    determined,
    rows: rows.map((row) => ({
      ...shape(row),
      measured_s: row.latencyS,
      predicted_s: row.predictedS,
      error_percent: signedError(row.predictedS, row.latencyS),
      left_out_predicted_s: row.heldOutS,
      left_out_error_percent: signedError(row.heldOutS, row.latencyS),
    })),
    overflowing: overflowing.map((row) => ({
      ...shape(row),
      measured_s: row.latencyS,
      predicted_s: row.predictedS,
      error_percent: signedError(row.predictedS, row.latencyS),
    })),
  };
}

/** Report on a profile from whole batches. */
export function calibrationTable({ profile, rows, overflowing, determined }: StaticBatchCalibration): string {
  const fit = profile.fit!;
  return [
    `${profile.name}: ${fit.rows} rows fitted`,
    '',
    ...coefficientRows(profile, determined),
    '',
    ...alignedRows([
      ['batch x (in + out)', 'measured, s', 'predicted, s', 'error', 'left out'],
      ...rows.map((row) => [
        label(row),
        row.latencyS.toFixed(2),
        row.predictedS.toFixed(2),
        percent(row.predictedS, row.latencyS),
        percent(row.heldOutS, row.latencyS),
      ]),
    ]),
    '',
    `error     ${fit.meanErrorPercent.toFixed(2)} % mean, ${fit.worstErrorPercent.toFixed(2)} % worst`,
    `left out  ${fit.heldOutMeanErrorPercent.toFixed(2)} % mean, ${fit.heldOutWorstErrorPercent.toFixed(2)} % worst (each row by a fit without it)`,
    ...overflowing.map(
      (row) =>
        `KV pool   ${label(row)} does not fit at once: measured ${row.latencyS.toFixed(2)} s, predicted ${row.predictedS.toFixed(2)} s, ${percent(row.predictedS, row.latencyS)} (not fitted)`,
    ),
    '',
    ...plot(rows.map(({ latencyS, predictedS }) => ({ measured: latencyS, predicted: predictedS }))),
  ].join('\n');
}

/** JSON of a profile from loads. */
export function benchCalibrationJson({
  profile,
  folds,
  failed,
  determined,
  gaps,
  warnings,
}: BenchCalibration) {
  return {
    profile,
    determined,
    gaps,
    warnings,
    failed_requests: failed,
    folds: folds.map(({ name, requests, measuredMs, errors, leftOut, slowness }) => ({
      name,
      requests,
      measured_ms: measuredMs,
      error_percent: errors,
      left_out_error_percent: leftOut,
      slowness,
    })),
  };
}

/** Report on a profile from loads. */
export function benchCalibrationTable(calibration: BenchCalibration): string {
  const { profile, weights, folds, failed, determined, gaps, warnings, e2eMs } = calibration;
  const fit = profile.fit!;
  const jitter = profile.requestOverheadJitter;
  return [
    `${profile.name}: ${fit.rows} requests fitted${failed === 0 ? '' : `, ${failed} without an answer left out`}`,
    '',
    ...coefficientRows(profile, determined, weights, [
      [
        'requestOverheadMs',
        profile.requestOverheadMs.toPrecision(4),
        `${Math.round(100 * determined.requestOverheadMs!)} %`,
      ],
    ]),
    ...(jitter === undefined
      ? []
      : [`${Math.round(100 * jitter)} % of the overhead vary from request to request.`]),
    ...gaps,
    ...warnings.map((warning) => `warning: ${warning}`),
    '',
    ...alignedRows([
      ['mean of', 'requests', 'TTFT, ms', 'TPOT, ms', 'latency, ms', 'errors', '', '', 'left out', '', ''],
      ...folds.map(({ name, requests, measuredMs, errors, leftOut }) => [
        name,
        String(requests),
        measuredMs.ttft.toFixed(1),
        measuredMs.tpot.toFixed(2),
        measuredMs.e2e.toFixed(0),
        ...[errors, leftOut].flatMap(({ ttft, tpot, e2e }) => [ttft, tpot, e2e].map(signedPercent)),
      ]),
    ]),
    '',
    `error     ${fit.meanErrorPercent.toFixed(2)} % mean, ${fit.worstErrorPercent.toFixed(2)} % worst, of the mean latency`,
    `left out  ${fit.heldOutMeanErrorPercent.toFixed(2)} % mean, ${fit.heldOutWorstErrorPercent.toFixed(2)} % worst (each line by a fit without it)`,
    '',
    ...plot(
      e2eMs
        .filter((_, i) => i % Math.ceil(e2eMs.length / MOST_POINTS) === 0)
        .map(({ measured, predicted }) => ({ measured: measured / 1000, predicted: predicted / 1000 })),
    ),
  ].join('\n');
}

/** Report on a profile from kernel times. */
export function kernelCalibrationTable({ profile, determined, kinds }: KernelCalibration): string {
  const fit = profile.fit!;
  return [
    `${profile.name}: ${fit.rows} iterations put together from kernel times`,
    '',
    ...coefficientRows(profile, determined),
    '',
    ...alignedRows([
      ['iterations', 'rows', 'left out'],
      ...Object.entries(kinds).map(([kind, { rows, heldOutMeanErrorPercent }]) => [
        kind,
        String(rows),
        `${heldOutMeanErrorPercent.toFixed(1)} %`,
      ]),
    ]),
    '',
    `error     ${fit.meanErrorPercent.toFixed(2)} % mean, ${fit.worstErrorPercent.toFixed(2)} % worst`,
    `left out  ${fit.heldOutMeanErrorPercent.toFixed(2)} % mean, ${fit.heldOutWorstErrorPercent.toFixed(2)} % worst (each half by a fit of the other)`,
  ].join('\n');
}

function coefficientRows(
  profile: EngineProfile,
  determined: StaticBatchCalibration['determined'],
  weights: WeightPrecision = 'FP16',
  more: readonly (readonly string[])[] = [],
): string[] {
  const { law } = profile.weights[weights]!;
  const open = coefficientsOf(law).filter((name) => (determined[name] ?? 0) < LEAST_DETERMINED);
  return [
    ...alignedRows([
      ['coefficient', 'value', 'determined'],
      ...coefficientsOf(law).map((name) => [
        name,
        coefficientOf(law, name)!.toPrecision(5),
        `${Math.round(100 * (determined[name] ?? 0))} %`,
      ]),
      ...more.map((row) => [...row]),
    ]),
    ...(open.length === 0
      ? []
      : [`These measurements hardly determine ${open.join(', ')}: near what the fit started from.`]),
  ];
}

/** Predicted against measured seconds, both logarithmic; a perfect fit lies on the diagonal. */
function plot(points: readonly { readonly measured: number; readonly predicted: number }[]): string[] {
  const values = points.flatMap(({ measured, predicted }) => [measured, predicted]);
  const low = Math.log(Math.min(...values));
  const span = Math.log(Math.max(...values)) - low || 1;
  const canvas = Array.from({ length: PLOT_LINES }, () => new Array<string>(PLOT_COLUMNS).fill(' '));
  const column = (s: number) => Math.round(((Math.log(s) - low) / span) * (PLOT_COLUMNS - 1));
  const line = (s: number) => PLOT_LINES - 1 - Math.round(((Math.log(s) - low) / span) * (PLOT_LINES - 1));
  for (let i = 0; i < PLOT_COLUMNS; i += 1) {
    canvas[PLOT_LINES - 1 - Math.round((i * (PLOT_LINES - 1)) / (PLOT_COLUMNS - 1))][i] = '·';
  }
  for (const { measured, predicted } of points) canvas[line(predicted)][column(measured)] = '●';
  const [least, most] = [Math.exp(low), Math.exp(low + span)].map((value) => `${value.toPrecision(3)} s`);
  return [
    'predicted',
    ...canvas.map((cells, i) => {
      const tick = i === 0 ? most! : i === PLOT_LINES - 1 ? least! : '';
      return `${tick.padStart(9)} ┤${cells.join('').trimEnd()}`;
    }),
    `${''.padStart(10)}└${'─'.repeat(PLOT_COLUMNS)}`,
    `${''.padStart(11)}${least!.padEnd(PLOT_COLUMNS - most!.length)}${most!}  measured`,
  ];
}

function shape({
  batch,
  inputTokens,
  outputTokens,
}: Pick<StaticBatchRow, 'batch' | 'inputTokens' | 'outputTokens'>) {
  return { batch, input_tokens: inputTokens, output_tokens: outputTokens };
}

function label({
  batch,
  inputTokens,
  outputTokens,
}: Pick<StaticBatchRow, 'batch' | 'inputTokens' | 'outputTokens'>) {
  return `${batch} x (${inputTokens} + ${outputTokens})`;
}

function signedError(predicted: number, measured: number): number {
  return Math.sign(predicted - measured) * errorPercent(predicted, measured);
}

function percent(predicted: number, measured: number): string {
  return signedPercent(signedError(predicted, measured));
}

function signedPercent(error: number): string {
  return `${error < 0 ? '-' : '+'}${Math.abs(error).toFixed(1)} %`;
}
