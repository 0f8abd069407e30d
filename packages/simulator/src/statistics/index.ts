export {
  type BootstrapOptions,
  blockResamples,
  type Interval,
  type IntervalEnds,
  nestedBootstrap,
  percentileInterval,
  stratifiedBootstrap,
} from './bootstrap.ts';
export { mean, sampleDeviation, variance } from './mean.ts';
export { inverseNormal, normalProbability, normalScore } from './normal-distribution.ts';
export { interquartileMean, percentileOfSorted, quantile } from './quantile.ts';
export { type Summary, summarize } from './summary.ts';
