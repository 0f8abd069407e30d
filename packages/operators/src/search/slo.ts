import { mean, percentileOfSorted } from '@servegym/simulator/statistics';

/** One bound of an SLO: the quantile (or the mean) of a latency stays at or below the limit. */
export interface SloTerm {
  readonly metric: 'ttft' | 'tpot' | 'e2e';
  /** The priority class whose requests it bounds, 0 is the most urgent; all requests where it is left out. */
  readonly priorityClass?: number;
  /** 0..1, for instance 0.99; `null` for the mean. */
  readonly quantile: number | null;
  readonly limitMs: number;
}

const TERM =
  /^(?:class([0-7])_)?(ttft|tpot|e2e)_(p\d{1,2}(?:\.\d+)?|p100|mean)\s*=\s*(\d+(?:\.\d+)?)\s*(ms|s)$/;
const FORM =
  'a list such as ttft_p99=300ms,tpot_p99=40ms (ttft, tpot or e2e; p50, p99 ... or mean; ms or s; class0_ before it for the most urgent class)';

/** Reads `ttft_p99=300ms,tpot_p99=40ms`. @throws TuningError that says what is wrong with which part. */
export function parseSlo(text: string): SloTerm[] {
  const fail = (expected: string, got: string) =>
    new TuningError('INVALID_SLO', `--slo: expected ${expected}, got ${got}`);
  const terms = text.split(',').map((part): SloTerm => {
    const match = TERM.exec(part.trim().toLowerCase());
    if (match === null) throw fail(FORM, `\`${part.trim()}\``);
    const [, priorityClass, metric, statistic, limit, unit] = match;
    const limitMs = Number(limit) * (unit === 's' ? 1000 : 1);
    const quantile = statistic === 'mean' ? null : Number(statistic!.slice(1)) / 100;
    if (limitMs === 0 || quantile === 0) throw fail('a limit and a percentile above 0', `\`${part.trim()}\``);
    return {
      ...{ metric: metric as SloTerm['metric'], quantile, limitMs },
      ...(priorityClass !== undefined && { priorityClass: Number(priorityClass) }),
    };
  });
  const names = terms.map(sloTermName);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw fail('each bound once', `${twice} twice`);
  return terms;
}

/** What a term bounds, of latencies in order. */
export function sloStatistic({ quantile }: SloTerm, sorted: Float64Array | readonly number[]): number {
  return quantile === null ? mean(sorted) : percentileOfSorted(sorted, 100 * quantile);
}

/** `ttft_p99`, or `class0_ttft_p99`. */
export function sloTermName(term: SloTerm): string {
  const { metric, priorityClass } = term;
  return `${priorityClass === undefined ? '' : `class${priorityClass}_`}${metric}_${statisticName(term)}`;
}

function statisticName({ quantile }: SloTerm): string {
  return quantile === null ? 'mean' : `p${Number((100 * quantile).toFixed(6))}`;
}

/** `TTFT p99 at most 300 ms`, or `TTFT p99 of class 0 at most 300 ms`. */
export function sloTermText(term: SloTerm): string {
  const { metric, limitMs, priorityClass } = term;
  const whose = priorityClass === undefined ? '' : ` of class ${priorityClass}`;
  return `${metric === 'e2e' ? 'end-to-end' : metric.toUpperCase()} ${statisticName(term)}${whose} at most ${milliseconds(limitMs)}`;
}

export function milliseconds(ms: number): string {
  if (ms >= 10_000) return `${Number((ms / 1000).toPrecision(3))} s`;
  return `${Number(ms.toPrecision(3))} ms`;
}

type TuningErrorCode =
  | 'INVALID_SLO'
  | 'INVALID_SEARCH_SPACE'
  /** A search space that no profile, or no engine that starts, is in. */
  | 'EMPTY_SEARCH_SPACE'
  /** Finished evaluations of another version. */
  | 'INVALID_EVALUATIONS'
  | 'TOO_FEW_REQUESTS'
  /** No request fits in the context of the model. */
  | 'TRACE_TOO_LONG'
  | 'TRACE_UNREADABLE'
  /** Files that `--data` should hold and does not. */
  | 'REFERENCE_DATA_MISSING'
  /** A command line or manifest that starts no engine. */
  | 'INVALID_LAUNCH'
  /** Fewer tokens allowed than the first loads take. */
  | 'TOO_FEW_TOKENS'
  | 'SERVER_ADDRESS'
  | 'SERVER_UNREACHABLE'
  /** A server that answers with something else than a stream of tokens. */
  | 'SERVER_REFUSED';

/** Input that the caller can correct. */
export class TuningError extends Error {
  override readonly name = 'TuningError';
  readonly isInputError = true;
  readonly code: TuningErrorCode;

  constructor(code: TuningErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
