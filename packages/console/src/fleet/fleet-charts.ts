import type { ChartSpec, Limit, SeriesSpec } from '../charts/chart-spec.ts';
import { amount, count, dollars, latencyText, latencyTick, words } from '../components/format.ts';
import { REWARD_CHART } from '../lazy/further-charts.ts';
import { byClass, latency, quantity, startsByClass, wholeTick } from '../llm-server/charts.ts';
import type { ClassSlo, Frame } from '../state/frame.ts';
import { arrivalsOf, BILLED, CAPACITY, NET, REFUSED, WASTED } from './fleet-report.ts';

/** The objectives of the classes, each by its name. */
function classLimits({ telemetry: { slo } }: Frame, of: (limits: ClassSlo) => number | undefined): Limit[] {
  return slo.flatMap((entry) => {
    const value = of(entry);
    return value === undefined ? [] : [{ value, label: `${words(entry.name)} ${latencyText(value)}` }];
  });
}

const rate = (value: number) => `${amount(value)}/s`;

/** Value that an action sets, as a step of the chart. */
function asked(knob: string, label: string): SeriesSpec {
  return {
    label,
    tone: 'text',
    draw: 'dashed',
    definition: 'Value that the action of the window set',
    format: count,
    value(frame) {
      const value = frame.action?.[knob];
      return typeof value === 'number' ? value : null;
    },
  };
}

const replicas: ChartSpec = {
  id: 'fleet-replicas',
  title: 'Replicas',
  unit: () => 'replicas, all billed',
  question: 'What is paid for?',
  tick: count,
  comparedUnit: 'billed',
  compared: { ...BILLED, draw: 'step' },
  series: () => [
    { ...quantity('Ready', 'replicas_ready', count), tone: 'running', draw: 'layer' },
    { ...quantity('Starting', 'replicas_starting', count), tone: 'waiting', draw: 'layer' },
    { ...quantity('Draining', 'replicas_draining', count), tone: 'tenant', draw: 'layer' },
    asked('replicas', 'Asked for'),
  ],
};

const demand: ChartSpec = {
  id: 'fleet-demand',
  title: 'Demand and capacity',
  unit: () => 'requests/s',
  question: 'Is it enough?',
  tick: count,
  compared: quantity('Answered', 'request_success_per_second', rate),
  series: (frame) => [
    ...byClass(frame, 'arrivals a second', ({ name }, { observation }) => arrivalsOf(observation, name), {
      draw: 'layer',
      format: rate,
    }),
    { ...quantity('Answered', 'request_success_per_second', rate), tone: 'text', draw: 'dashed' },
    { ...CAPACITY, tone: 'limit', draw: 'dashed', format: rate },
  ],
};

const firstToken: ChartSpec = {
  id: 'fleet-ttft',
  title: 'Time to first token',
  unit: () => 'TTFT, slowest 1\u202f%',
  question: 'When does it start?',
  logarithmic: true,
  tick: latencyTick,
  limits: (frame) => classLimits(frame, ({ ttftMs }) => ttftMs),
  compared: latency('Slowest 1\u202f%', 'time_to_first_token_seconds_p99', 1000),
  series: startsByClass,
};

const perHour = (value: number) => `${dollars(value)}/h`;

const money: ChartSpec = {
  id: 'fleet-money',
  title: 'Dollars',
  unit: () => 'USD an hour',
  question: 'Does it pay?',
  signed: true,
  tick: (value) => `${value < 0 ? '−' : ''}$${count(Math.abs(value))}`,
  comparedUnit: 'earned less the bill, USD an hour',
  compared: { ...NET, format: perHour },
  series: () => [
    { ...quantity('Earned', 'revenue_usd_per_hour', perHour), tone: 'running', draw: 'area' },
    { ...quantity('Bill', 'usd_per_hour', perHour), tone: 'limit', draw: 'step' },
    { ...WASTED, tone: 'waiting', format: perHour },
  ],
};

const refused: ChartSpec = {
  id: 'fleet-refused',
  title: 'Refused',
  unit: () => 'requests a window',
  question: 'Who is sent away?',
  tick: wholeTick,
  compared: REFUSED,
  series: (frame) =>
    byClass(frame, 'answered with 429', ({ refused }) => refused, { draw: 'layer', format: count }),
};

/** The charts of a fleet that the page shows at first. */
export const FLEET_CHARTS: readonly ChartSpec[] = [demand, money, firstToken];

/** The charts of a fleet that are shown on demand, before those of its other numbers. */
export const FURTHER_FLEET_CHARTS: readonly ChartSpec[] = [replicas, refused, REWARD_CHART];
