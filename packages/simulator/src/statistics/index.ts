export {
  blockResamples,
  type Interval,
  type IntervalEnds,
  percentileInterval,
  stratifiedBootstrap,
} from './bootstrap.ts';
export { rankCorrelation } from './correlation.ts';
export { inverseNormal, normalProbability } from './normal-distribution.ts';
export {
  interquartileMean,
  mean,
  percentileOfSorted,
  quantile,
  type Summary,
  sampleDeviation,
  summarize,
  variance,
} from './summary.ts';
