import type { Trace } from '@servegym/simulator';
import type { SearchReport } from '../report/result.ts';
import { type Autoscaled, canScale } from './autoscaled.ts';
import { engineUsd } from './candidate.ts';
import type { EngineChoice, Evaluator } from './evaluator.ts';
import type { AutoscalerChoice, RouterChoice } from './search-space.ts';
import { type Scored, Searcher, type SearchStage } from './searcher.ts';
import { someBlocks, type Traffic } from './traffic.ts';

/** Engines that keep the SLO on a trace while all of them run. */
export interface ScalableFleet extends EngineChoice {
  readonly router: RouterChoice;
  /** Engines that there are at most, and in the beginning. */
  readonly most: number;
  /** No schedule on them costs less, USD an hour. Default 0. */
  readonly leastUsd?: number;
}

/** An autoscaler of engines, with their bill. */
export type AutoscaledFleet = Autoscaled & { readonly usdPerHour: number };

interface Point {
  readonly fleet: number;
  /** Place among the autoscalers. */
  readonly at: number;
}

/** Length of a stretch, ms: several times what an engine takes to start and to leave. */
const STRETCH_MS = 1_800_000;
/** Share of the stretches that all autoscalers are tried on. */
const SHORT = 1 / 6;
const WHOLE = { blocks: Number.POSITIVE_INFINITY };
const NEXT: SearchStage = { name: 'autoscalers beside the best', ...WHOLE };
/** USD an hour that an SLO counts as, for each time that it is exceeded: more than any fleet costs. */
const MISSED = 1e9;

/**
 * Of autoscalers, for each of the fleets the one with the lowest bill that keeps the SLO on the whole trace: `null` where none does,
 * `undefined` where a bound or a setting rules the fleet out. All are tried on stretches of half an hour up to the busiest, and half of
 * those of each fleet on the whole trace.
 *
 * @param most a fleet whose least cost is above this many USD an hour is not looked at
 */
export async function searchAutoscalers(
  evaluator: Evaluator,
  trace: Trace,
  fleets: readonly ScalableFleet[],
  autoscalers: readonly AutoscalerChoice[],
  most = Number.POSITIVE_INFINITY,
): Promise<{ readonly found: readonly (AutoscaledFleet | null | undefined)[] } & Effort> {
  const whole = inStretches(trace);
  const blocks = Math.ceil(SHORT * (whole.blockStarts.length - 1));
  const short = someBlocks(whole, blocks);
  const searcher = new Searcher<Point, Point & AutoscaledFleet & Scored, SearchStage>({
    keyOf: ({ fleet, at }) => `${fleet} ${at}`,
    kindOf: ({ fleet }) => String(fleet),
    mayBeKept: ({ fleet }) => (fleets[fleet].leastUsd ?? 0) <= most,
    async evaluate(points, stage) {
      const found = await evaluator.autoscaled(
        stage.blocks === blocks ? short : whole,
        points.map(({ fleet, at }) => {
          const { profile, candidate, router, most } = fleets[fleet];
          return { profile, candidate, router, most, autoscaler: autoscalers[at] };
        }),
      );
      return points.map((point, i) => {
        const usdPerHour = found[i].engines * engineUsd(fleets[point.fleet].profile);
        const { timesLimit } = found[i];
        return {
          ...{ ...point, ...found[i], usdPerHour },
          score: timesLimit <= 1 ? -usdPerHour : -MISSED * timesLimit,
        };
      });
    },
  });
  const isTried = fleets.map(({ candidate, most }) => canScale(candidate, most, evaluator.slo));
  const points = fleets.flatMap((_, fleet) =>
    isTried[fleet] ? autoscalers.map((_, at): Point => ({ fleet, at })) : [],
  );
  const first: SearchStage = { name: 'autoscalers on the busier stretches', blocks };
  const second: SearchStage = { name: 'autoscalers on all of the trace', ...WHOLE, keep: 1 / 2 };
  await searcher.halve(points, short === whole ? [second] : [first, second]);
  await searcher.climb(NEXT, ({ fleet, at }) =>
    [at - 1, at + 1].filter((near) => near in autoscalers).map((near) => ({ fleet, at: near })),
  );
  const best = Map.groupBy(searcher.ranked, ({ fleet }) => fleet);
  return {
    found: fleets.map((_, fleet) => {
      const [first] = best.get(fleet) ?? [];
      return first && first.timesLimit > 1 ? null : first;
    }),
    agreements: searcher.agreements,
    ruledOut: searcher.ruledOut,
  };
}

type Effort = Pick<SearchReport, 'agreements' | 'ruledOut'>;

/** The trace with stretches of half an hour as its blocks. */
function inStretches(trace: Trace): Traffic {
  const { arrivalMs } = trace;
  const blockStarts = [0];
  for (const [i, ms] of arrivalMs.entries()) {
    if (Math.floor(ms / STRETCH_MS) > Math.floor(arrivalMs[blockStarts.at(-1)!] / STRETCH_MS))
      blockStarts.push(i);
  }
  return { trace, blockStarts: [...blockStarts, arrivalMs.length] };
}
