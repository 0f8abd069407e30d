import type { ComponentChildren, JSX } from 'preact';
import { fromZero } from '../charts/scales.ts';
import { type XYChart, XYChartBox } from '../charts/xy-chart.tsx';
import { Button } from '../components/controls.tsx';
import {
  amount,
  count,
  dollars,
  finePercent,
  latencyText,
  latencyTick,
  percent,
} from '../components/format.ts';
import { CopyBox, Table, type TableProps } from '../panels/copy-box.tsx';
import { saveCsv } from '../panels/csv.ts';
import { enginesText, type Plan, type PlanResult, paretoFront, settingsText } from './plan-client.ts';

interface PlansProps {
  readonly plans: readonly Plan[];
  /** Once it is complete. */
  readonly result: PlanResult | undefined;
  /** With all columns of the table. */
  readonly isFull?: boolean;
}

/** Plans as a chart and a table; of a complete result also the commands, and what was not planned. */
export function Plans({ plans, result, isFull }: PlansProps): JSX.Element {
  const all = [...plans].sort((a, b) => a.usd_per_hour - b.usd_per_hour);
  const isAllowed = ({ assumes }: Plan) => assumes.every((each) => result?.allow.includes(each));
  const allowed = all.filter(isAllowed);
  const lead = leadOf(allowed);
  const shown = allowed.sort((a, b) => Number(b === lead) - Number(a === lead));
  const riskier = all.filter((plan) => !isAllowed(plan));
  const isDone = result !== undefined && shown.length > 0;
  const columns = isFull ? [...COLUMNS, ...FURTHER_COLUMNS] : COLUMNS;
  return (
    <>
      {shown.length > 0 && <XYChartBox chart={frontChart(shown)} />}
      {shown.length > 0 && <PlanTable label="Table of plans" plans={shown} columns={columns} />}
      {isDone && <Button look="small" text="Save as CSV" onClick={() => saveCsv('plans', all.map(rowOf))} />}
      {isDone && <Commands commands={shown[0].commands} />}
      {riskier.length > 0 && (
        <details>
          <summary>On assumptions, to be measured before you buy: {riskier.length}</summary>
          <PlanTable label="Plans on assumptions" plans={riskier} columns={[...columns, ASSUMES]} />
        </details>
      )}
      {result && <NotPlanned result={result} />}
      <p class="fine">
        The figures come from a simulator. Measure one GPU hour on the engine that you choose before you buy.
      </p>
    </>
  );
}

/** The cheapest plan that rests on measurements of its profile, or the cheapest of all. */
function leadOf(plans: readonly Plan[]): Plan | undefined {
  return plans.find(({ rests_on }) => rests_on === 'measured') ?? plans[0];
}

/** The plan to begin with in words. */
export function answerText(result: PlanResult): string {
  const { requests, requests_simulated, hours, requests_per_s, wall_s } = result;
  const traffic = `${count(requests)} requests in ${amount(hours)} h, ${amount(requests_per_s)} a second; ${count(requests_simulated)} simulated at each load, in ${amount(wall_s)} s.`;
  const [cheapest] = result.plans;
  const lead = leadOf(result.plans);
  const [riskier] = result.riskier;
  const isCheaper = riskier && !(riskier.usd_per_hour >= cheapest?.usd_per_hour);
  const other = isCheaper
    ? `On assumptions (${riskier.assumes.join(', ')}): ${enginesText(riskier)} for ${dollars(riskier.usd_per_hour)}. `
    : '';
  if (!lead) return `No GPU meets the SLO by what was measured. ${other}${traffic}`;
  const { low, high } = lead.confidence.usd_per_hour;
  const first = lead.breaks_first === null ? '' : `; ${lead.breaks_first} breaks first`;
  const [which, cheaper] =
    lead === cheapest
      ? ['Cheapest', '']
      : [
          'Cheapest that was measured',
          `On ${cheapest.rests_on === 'tables' ? 'kernel tables' : 'data sheets'} it could be ${enginesText(cheapest)} for ${dollars(cheapest.usd_per_hour)}. `,
        ];
  return `${which}: ${enginesText(lead)} (${count(lead.gpus)} ${lead.gpus === 1 ? 'GPU' : 'GPUs'}) for ${dollars(lead.usd_per_hour)} an hour (${dollars(low)} to ${dollars(high)}). They sustain ${amount(lead.headroom)} times this load${first}. ${cheaper}${other}${traffic}`;
}

/** USD an hour against TTFT p99, with the front drawn through. */
export function frontChart(plans: readonly Plan[]): XYChart {
  const front = paretoFront(plans);
  const place = ({ ttft_p99_ms, usd_per_hour }: Plan) => [ttft_p99_ms, usd_per_hour] as const;
  const times = plans.map(({ ttft_p99_ms }) => Math.max(1, ttft_p99_ms));
  const dot = (plan: Plan) => ({
    x: plan.ttft_p99_ms,
    y: plan.usd_per_hour,
    title: `${enginesText(plan)}: ${dollars(plan.usd_per_hour)} an hour, TTFT p99 ${latencyText(plan.ttft_p99_ms)}`,
  });
  return {
    label: `${plans.length} plans by price and time to first token, ${front.length} of them on the front`,
    x: {
      title: 'time to first token, slowest 1 %',
      logarithmic: true,
      domain: [Math.min(100, ...times) / 1.3, Math.max(1000, ...times) * 1.3],
      text: latencyTick,
    },
    y: {
      title: '',
      domain: fromZero([1, ...plans.map(({ usd_per_hour }) => usd_per_hour)]),
      text: dollars,
    },
    lines: [{ look: 'first', points: front.length > 1 ? front.map(place) : [] }],
    dots: [
      ...plans
        .filter((plan) => !front.includes(plan))
        .map((plan) => ({ ...dot(plan), look: 'faint' as const, radius: 4.5, hollow: true })),
      ...front.map((plan) => ({ ...dot(plan), look: 'first' as const, radius: 6 })),
    ],
  };
}

type Column = readonly [name: string, text: (plan: Plan) => string];

const COLUMNS: readonly Column[] = [
  ['GPUs', ({ gpus }) => count(gpus)],
  ['USD/h', ({ usd_per_hour }) => dollars(usd_per_hour)],
  [
    '95 %',
    ({ confidence: { usd_per_hour } }) => `${dollars(usd_per_hour.low)}–${dollars(usd_per_hour.high)}`,
  ],
  ['Autoscaled', ({ autoscaled_usd_per_hour }) => dollars(autoscaled_usd_per_hour)],
  ['At least', ({ lower_bound_usd_per_hour }) => dollars(lower_bound_usd_per_hour)],
  ['USD/M out', ({ usd_per_million_output_tokens }) => dollars(usd_per_million_output_tokens)],
  ['TTFT p99', ({ ttft_p99_ms }) => latencyText(ttft_p99_ms)],
  ['TPOT p99', ({ tpot_p99_ms }) => latencyText(tpot_p99_ms)],
  ['Headroom', ({ headroom }) => `${amount(headroom)}×`],
  ['At 1.5×', ({ good_at_1_5_times }) => percent(good_at_1_5_times)],
  ['Rests on', ({ rests_on }) => rests_on],
];

const ASSUMES: Column = ['Assumes', ({ assumes }) => assumes.join(', ')];

/** Columns of a report. */
const FURTHER_COLUMNS: readonly Column[] = [
  ['USD/M in', ({ usd_per_million_input_tokens }) => dollars(usd_per_million_input_tokens)],
  ['kW at most', ({ kwh_per_hour_at_most: kw }) => (kw === null ? '–' : amount(kw))],
  ['Breaks first', ({ breaks_first }) => breaks_first ?? '–'],
  ['Quality', ({ quality }) => finePercent(quality)],
  ['Settings', ({ settings }) => settingsText(settings)],
];

function PlanTable({
  label,
  plans,
  columns,
}: {
  label: string;
  plans: readonly Plan[];
  columns: readonly Column[];
}): JSX.Element {
  const front = paretoFront(plans);
  const names = ['Engines and profile', ...columns.map(([name]) => name)];
  return (
    <WideTable
      label={label}
      names={names}
      rows={plans.map((plan) => [
        `${enginesText(plan)}${plan.router === 'prefix_aware' ? ', routed by prefix' : ''}`,
        ...columns.map(([, text]) => text(plan)),
      ])}
      isBold={(row) => front.includes(plans[row])}
    >
      Bold: no cheaper plan has a lower TTFT p99. 95 %: over stretches of the traffic, widened by the error of
      the profile. Autoscaled: the mean bill when engines follow the demand. At least: no schedule on these
      GPUs costs less. At 1.5×: share of the requests that meet every limit when 1.5 times the traffic comes.
    </WideTable>
  );
}

interface WideTableProps extends TableProps {
  readonly label: string;
  /** What the columns mean. */
  readonly children: ComponentChildren;
}

/** A table that scrolls sideways where it is wider than the page. */
export function WideTable({ label, children, ...table }: WideTableProps): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section class="wide-table" tabIndex={0} aria-label={label}>
      <Table {...table} />
      <p class="fine">{children}</p>
    </section>
  );
}

/** A plan with the first of its commands, as a row of CSV. */
function rowOf({ commands, ...plan }: Plan) {
  return { ...plan, command: commands[0]?.line };
}

/** How to start what was found. */
export function Commands({ commands }: Pick<Plan, 'commands'>): JSX.Element {
  return (
    <section class="commands">
      {commands.map(({ engine, pool, line, not_expressed }) => (
        <div key={`${engine} ${pool}`}>
          <h2>
            Start {pool ?? 'it'} with {engine}
          </h2>
          <CopyBox label={`Command for ${pool === undefined ? '' : `${pool}, `}${engine}`} text={line} />
          {not_expressed.length > 0 && <p class="fine">Not in the line: {not_expressed.join('; ')}</p>}
        </div>
      ))}
    </section>
  );
}

function NotPlanned({ result: { not_planned } }: { result: PlanResult }): JSX.Element | null {
  if (not_planned.length === 0) return null;
  return (
    <details>
      <summary>Not planned: {not_planned.length}</summary>
      <ul>
        {not_planned.map(({ profile, precision, reason }) => (
          <li key={`${profile} ${precision}`} class="fine">
            {profile}, {precision}: {reason}
          </li>
        ))}
      </ul>
    </details>
  );
}
