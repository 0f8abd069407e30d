import type { Fields } from '../api/wire.ts';
import type { ChartSpec } from '../charts/chart-spec.ts';
import { amount, count, signed, words } from '../components/format.ts';
import { REWARD } from '../llm-server/charts.ts';

/** More charts than this help nobody. */
const MOST_CHARTS = 24;
/** Numbers that only count the windows or name something. */
export const NO_QUANTITY = /^(step|steps|timestep|step_index|step_count|seed|pid|timestamp)$/;

/** A chart for each number, boolean and choice in an observation, apart from the fields that are shown already. */
export function chartsOfSchema(observation: Fields, shown: ReadonlySet<string>): ChartSpec[] {
  const properties = (observation.properties ?? {}) as Record<string, Fields>;
  return Object.entries(properties)
    .filter(([name]) => !shown.has(name) && !NO_QUANTITY.test(name))
    .flatMap(([name, schema]) => chartOfField(name, schema) ?? [])
    .slice(0, MOST_CHARTS);
}

function chartOfField(name: string, schema: Fields): ChartSpec | undefined {
  const values = Array.isArray(schema.enum) ? schema.enum.map(String) : undefined;
  const levels = schema.type === 'boolean' ? ['false', 'true'] : values;
  if (!levels && schema.type !== 'number' && schema.type !== 'integer') return undefined;
  const series = {
    label: words(name),
    field: name,
    draw: levels ? ('step' as const) : ('line' as const),
    value({ observation }: { observation: Fields }) {
      const value = observation[name];
      if (levels) return value === undefined ? undefined : Math.max(0, levels.indexOf(String(value)));
      return typeof value === 'number' && Number.isFinite(value)
        ? value
        : value === undefined
          ? undefined
          : null;
    },
    format: (value: number) => (levels ? (levels[value] ?? '–') : amount(value)),
  };
  return {
    id: name,
    title: words(name),
    unit: () => '',
    question: '',
    definition: String(schema.description ?? ''),
    signed: true,
    tick: (value) => (levels ? (levels[value] ?? '') : tick(value)),
    levels,
    compared: series,
    series: () => [{ ...series, tone: 'median' }],
  };
}

function tick(value: number): string {
  const size = Math.abs(value);
  return (size >= 100 || Number.isInteger(value) ? count(value) : amount(value)).replace('-', '−');
}

/** The reward of any environment. */
export const REWARD_CHART: ChartSpec = {
  ...REWARD,
  unit: () => 'a step',
  question: 'What is it worth?',
  tick,
  rightTick: tick,
  series: () => [
    { label: 'Reward', tone: 'tokens', draw: 'step', value: (frame) => frame.reward, format: signed },
    { ...REWARD.compared, tone: 'text', axis: 'right' },
  ],
};
