import type { FittedWorkload } from '@servegym/environments';
import { alignedRows } from '@servegym/operators/report';

/** Figures of the models, and their distances to their traces. */
export function trafficTable(models: readonly FittedWorkload[]): string {
  const summary = alignedRows([
    ['traffic', 'requests', 'rate /s', 'prompt p50', 'p99', 'output p50', 'p99', 'shared prefix'],
    ...models.map(({ id, requests, arrivals, lengths, prefixes }) => [
      id,
      `${requests}`,
      arrivals.perSecond.toFixed(2),
      quantile(lengths, lengths.input, 0.5),
      quantile(lengths, lengths.input, 0.99),
      quantile(lengths, lengths.output, 0.5),
      quantile(lengths, lengths.output, 0.99),
      prefixes === null ? '-' : `${(100 * prefixes.cacheableShare).toFixed(0)} %`,
    ]),
  ]);
  const distances = alignedRows([
    ['KS distance', 'prompt', 'held out', 'of halves', 'output', 'held out', 'of halves', 'counts', 'gaps'],
    ...models.map(({ id, fit: { ks, heldOut } }) => [
      id,
      ...[
        ...[ks.input, heldOut.input, heldOut.halvesInput],
        ...[ks.output, heldOut.output, heldOut.halvesOutput],
        ...[ks.counts, ks.gaps],
      ].map((distance) => distance.toFixed(3)),
    ]),
  ]);
  const scales = [...new Set(models.flatMap(({ fit }) => fit.dispersion.map(({ seconds }) => seconds)))];
  const dispersion = alignedRows([
    ['variance / mean of arrivals, trace | model', ...scales.map((seconds) => `${seconds} s`)],
    ...models.map(({ id, fit }) => [
      id,
      ...scales.map((scale) => {
        const at = fit.dispersion.find(({ seconds }) => seconds === scale);
        return at === undefined ? '-' : `${at.trace.toPrecision(3)} | ${at.model.toPrecision(3)}`;
      }),
    ]),
  ]);
  return [...summary, '', ...distances, '', ...dispersion].join('\n');
}

function quantile(
  { probabilities }: FittedWorkload['lengths'],
  quantiles: readonly number[],
  probability: number,
): string {
  const nearest = probabilities.reduce(
    (best, p, i) => (Math.abs(p - probability) < Math.abs(probabilities[best] - probability) ? i : best),
    0,
  );
  return `${quantiles[nearest]}`;
}
