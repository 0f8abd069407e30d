import type { tuneResult } from '@servegym/operators';
import type { JSX } from 'preact';
import { fromZero } from '../charts/scales.ts';
import { type XYChart, XYChartBox } from '../charts/xy-chart.tsx';
import { amount, count, dollars } from '../components/format.ts';
import { answerText, Plans } from '../plan/plan-answer.tsx';
import { enginesText, type Plan, type PlanResult } from '../plan/plan-client.ts';

/** The figures that matter most. */
export function Numbers(props: {
  numbers: readonly (readonly [value: string, name: string])[];
}): JSX.Element {
  return (
    <dl class="numbers">
      {props.numbers.map(([value, name]) => (
        <div key={name} class="panel">
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Notes({ notes }: { notes: readonly Note[] }): JSX.Element {
  return (
    <div class="report-charts">
      {notes.map(({ title, items, code }) => (
        <section key={title} class="panel plan-answer">
          <h2>{title}</h2>
          {items && (
            <ul>
              {items.map((item) => (
                <li key={item} class="fine">
                  {item}
                </li>
              ))}
            </ul>
          )}
          {code !== undefined && <pre>{code}</pre>}
        </section>
      ))}
    </div>
  );
}

/** A section of a report in words. */
export interface Note {
  readonly title: string;
  readonly items?: readonly string[];
  /** Text to copy. */
  readonly code?: string;
}

/** What a page shows that a command writes. The command's own JSON is its `result`. */
export type Report = {
  readonly title: string;
  readonly lead: string;
  readonly notes?: readonly Note[];
} & (
  | { readonly kind: 'plan'; readonly result: PlanResult }
  | { readonly kind: 'tune'; readonly result: readonly ReportedTune[] }
  | { readonly kind: 'training'; readonly result: readonly TrainingMetrics[] }
);

/** A point of the curve of a load. */
export interface LoadPoint {
  readonly rate: number;
  readonly good: number;
  readonly sloUse: number;
}

type TuneJson = ReturnType<typeof tuneResult.json>;
/** A result of `tune`, and what its page draws beside it. */
export type ReportedTune = TuneJson & {
  readonly page: {
    /** Status and source of the profile. */
    readonly source: string;
    readonly curves: { readonly winner: readonly LoadPoint[]; readonly defaults: readonly LoadPoint[] };
    /** Settings that were simulated and are not on the front. */
    readonly others: FoundTune['front'];
    /** Sentences for an SLO that nothing meets; else none. */
    readonly impossible: readonly string[];
  };
};
/** The result where some settings meet the SLO. */
export type FoundTune = Extract<TuneJson, { candidates: unknown }>;

/** A line of `metrics.jsonl`. */
export type TrainingMetrics = { readonly steps: number } & Readonly<Record<string, number | null>>;

export function PlanReport({ result }: { result: PlanResult }): JSX.Element {
  const { plans } = result;
  const [cheapest] = plans;
  return (
    <>
      {cheapest && <PlanNumbers plan={cheapest} />}
      {cheapest && (
        <section class="panel plan-answer">
          <h2>What could still be saved</h2>
          <XYChartBox chart={savingsChart(plans)} />
        </section>
      )}
      <section class="panel plan-answer">
        <p>{answerText(result)}</p>
        <Plans plans={[...plans, ...result.riskier]} result={result} isFull />
      </section>
    </>
  );
}

function PlanNumbers({ plan }: { plan: Plan }): JSX.Element {
  const { low, high } = plan.confidence.usd_per_hour;
  return (
    <Numbers
      numbers={[
        [
          dollars(plan.usd_per_hour),
          `an hour (${dollars(low)} to ${dollars(high)}), all engines all the time`,
        ],
        [`${count(plan.gpus)} ${plan.gpus === 1 ? 'GPU' : 'GPUs'}`, enginesText(plan)],
        [
          dollars(plan.autoscaled_usd_per_hour),
          `an hour when engines follow the demand; no schedule costs less than ${dollars(plan.lower_bound_usd_per_hour)}`,
        ],
        [dollars(plan.usd_per_million_output_tokens), 'for a million output tokens of this traffic'],
        [`${amount(plan.headroom)}×`, 'the load that they sustain'],
      ]}
    />
  );
}

/** Plans whose savings are drawn. */
const MOST_BARS = 6;

/** Bars of the cheapest plans: all the time, with an autoscaler, and the bound. */
function savingsChart(plans: readonly Plan[]): XYChart {
  const shown = plans.slice(0, MOST_BARS);
  const bar = (at: number, usd: number) =>
    [
      [0, at],
      [usd, at],
    ] as const;
  return {
    label:
      'USD an hour of the cheapest plans: all the time, with an autoscaler, and the least there could be',
    x: {
      title: 'USD an hour',
      domain: fromZero(shown.map(({ usd_per_hour }) => usd_per_hour)),
      text: dollars,
    },
    y: {
      title: '',
      domain: [shown.length - 0.5, -0.5],
      ticks: shown.map((_, i) => i),
      text: (i) => enginesText(shown[i]),
    },
    lines: shown.flatMap((plan, i) => [
      { look: 'faint', thick: true, points: bar(i - 0.2, plan.usd_per_hour) },
      { look: 'first', thick: true, points: bar(i, plan.autoscaled_usd_per_hour) },
      { look: 'second', thick: true, points: bar(i + 0.2, plan.lower_bound_usd_per_hour) },
    ]),
    legend: [
      { look: 'faint', text: 'all the time' },
      { look: 'first', text: 'autoscaled' },
      { look: 'second', text: 'at least' },
    ],
    height: 94 + 44 * shown.length,
  };
}

/** Charts of all that was measured during a run, the learning curve first. */
export function TrainingReport({ metrics }: { metrics: readonly TrainingMetrics[] }): JSX.Element {
  const names = new Set(['mean_return', ...Object.keys(metrics.at(-1) ?? {})]);
  names.delete('steps');
  return (
    <div class="report-charts">
      {[...names].map((name) => (
        <figure key={name} class="panel plan-answer" aria-label={name.replaceAll('_', ' ')}>
          <h2>{name.replaceAll('_', ' ')}</h2>
          <XYChartBox chart={metricChart(metrics, name)} />
        </figure>
      ))}
    </div>
  );
}

/** Weight of a new point in the smoothed line. */
const SMOOTHING = 0.2;

/** A metric over a run: every update that has it, and a smoothed line. */
export function metricChart(metrics: readonly TrainingMetrics[], name: string): XYChart {
  const points = metrics.flatMap(({ steps, [name]: value }) =>
    typeof value === 'number' && Number.isFinite(value) ? [[steps, value] as const] : [],
  );
  const values = points.length === 0 ? [0, 1] : points.map(([, value]) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = 0.05 * (high - low || 1);
  let mean = points[0]?.[1] ?? 0;
  const smoothed = points.map(([steps, value]) => {
    mean += SMOOTHING * (value - mean);
    return [steps, mean] as const;
  });
  return {
    label: `${name.replaceAll('_', ' ')} over the windows played`,
    x: { title: 'windows played', domain: [0, points.at(-1)?.[0] ?? 1], text: count },
    y: {
      title: name === 'mean_return' ? 'mean return of an episode' : name.replaceAll('_', ' '),
      domain: [low - room, high + room],
      text: amount,
    },
    lines: [
      { look: 'faint', points },
      { look: 'first', points: smoothed },
    ],
  };
}
