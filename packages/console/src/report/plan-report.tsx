import type { JSX } from 'preact';
import { fromZero } from '../charts/scales.ts';
import { type XYChart, XYChartBox } from '../charts/xy-chart.tsx';
import { amount, count, dollars } from '../components/format.ts';
import { answerText, Plans } from '../plan/plan-answer.tsx';
import { enginesText, type Plan, type PlanResult } from '../plan/plan-client.ts';
import { Numbers } from './sections.tsx';

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
        <Plans plans={plans} result={result} isFull />
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
