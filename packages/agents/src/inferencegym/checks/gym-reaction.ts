import { GYM_DEFAULT_ACTION, type GymAction, type GymTask, type GymWorld } from '@servegym/environments';
import type { CheckEffort, CheckResult } from '../../core/checks/check-result.ts';
import { inertKnobs, type KnobSwing, knobSwing, serverReacts } from '../../core/checks/knob-swing.ts';
import { gymKnobs, valuesOf, withGymKnob } from './gym-knob-values.ts';
import { meanOfGym, type PlayedGym, playGym, scaleGymArrivals } from './play-gym.ts';

/** Load under which a starved server must be seen to fail. */
const OVERLOAD = 4;
/** Figures that a knob may move. */
const FIGURES = [
  'queueDepth',
  'ttftMs',
  'tpotMs',
  'kvOccupancy',
  'violationRate',
  'memoryGb',
  'tokensPerSecond',
  'cost',
] as const satisfies readonly (keyof PlayedGym)[];
type Figure = (typeof FIGURES)[number];

/**
 * Whether queue, latency and memory answer to what is done.
 * @param good where the knobs are turned from: a server that is overloaded whatever is done shows nothing
 */
export function checkGymReaction(
  world: GymWorld,
  task: GymTask,
  effort: CheckEffort,
  good: GymAction,
): CheckResult[] {
  const swings = knobSwings(world, task, effort, good);
  const remedy = `the table's server is far too fast or far too slow for the arrivals of task ${task.id}.`;
  const inert = inertKnobs(swings);
  const starved = { ...good, batch_size: 1 };
  const crowded = scaleGymArrivals(task, OVERLOAD);
  const violated = meanOfGym(
    effort.seeds,
    (seed) => playGym(world, crowded, seed, () => starved),
    'violationRate',
  );
  const outOfMemory = meanOfGym(
    effort.seeds,
    (seed) => playGym(world, task, seed, () => GYM_DEFAULT_ACTION),
    'outOfMemory',
  );
  return [
    ...serverReacts(swings, { queue: 'queueDepth', ttft: 'ttftMs', kv: 'kvOccupancy' }, remedy),
    {
      id: 'knobs_act',
      group: 'reaction',
      title: 'every active knob changes something that can be seen',
      outcome: inert.length === 0 ? 'pass' : 'fail',
      figures: { inert: inert.join(', ') || 'none' },
      ...(inert.length > 0 && {
        advice: 'The table has the same figures along that axis, or one value only: measure more of them.',
      }),
    },
    {
      id: 'starvation_shows',
      group: 'reaction',
      title: `one sequence at a time under ${OVERLOAD} times the load violates the objectives`,
      outcome: violated > 0.5 ? 'pass' : 'fail',
      figures: { violation_rate: violated },
    },
    {
      id: 'sane_default',
      group: 'reaction',
      title: 'the default configuration does not run out of memory',
      outcome: outOfMemory === 0 ? 'pass' : 'fail',
      figures: { out_of_memory: outOfMemory },
      ...(outOfMemory > 0 && {
        advice:
          'The default takes the whole pool beside a batch of 32. Set `memory_limit_gb` of the table to what the GPU has.',
      }),
    },
  ];
}

/** Each knob from one end of its range to the other. */
function knobSwings(
  world: GymWorld,
  task: GymTask,
  { seeds }: CheckEffort,
  good: GymAction,
): KnobSwing<Figure>[] {
  const [seed] = seeds as readonly [number];
  return gymKnobs(task).map((turned) => {
    const values = valuesOf(turned);
    const ends = [values[0], values.at(-1)!].map((value) =>
      playGym(world, task, seed, () => withGymKnob(good, turned.knob, value)),
    ) as [PlayedGym, PlayedGym];
    return knobSwing(turned.knob, FIGURES, ends);
  });
}
