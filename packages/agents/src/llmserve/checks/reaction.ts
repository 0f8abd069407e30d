import { type ServeTask, scaleArrivals } from '@servegym/environments';
import type { CheckEffort, CheckResult } from '../../core/checks/check-result.ts';
import { inertKnobs, type KnobSwing, knobSwing, serverReacts } from '../../core/checks/knob-swing.ts';
import { withKnob } from '../planning/knob-grid.ts';
import { serveKnobs } from './knob-values.ts';
import { meanOver, type PlayedTask, playTask } from './play-task.ts';

/** Load under which a starved server must be seen to fail. */
const OVERLOAD = 4;

/** Figures that a knob may move. */
const FIGURES = [
  'queueDepth',
  'activeRequests',
  'p99TtftMs',
  'p50ItlMs',
  'kvOccupancy',
  'throughputTps',
  'sloCompliance',
  'gpuMemoryGb',
  'costPer1k',
  'interactiveTtftMs',
] as const satisfies readonly (keyof PlayedTask)[];
type Figure = (typeof FIGURES)[number];

/** Whether queue, latency and memory answer to what is done. */
export function checkReaction(task: ServeTask, effort: CheckEffort): CheckResult[] {
  const swings = knobSwings(task, effort);
  const remedy = `raise the arrivals of \`${task.id}\`, or lengthen its requests, until the server has work.`;
  return [
    ...serverReacts(swings, { queue: 'queueDepth', ttft: 'p99TtftMs', kv: 'kvOccupancy' }, remedy),
    everyKnobActs(task, swings),
    starvationShows(task, effort),
    saneDefault(task, effort),
  ];
}

/** Each free knob from one end of its range to the other, the others at the default. */
function knobSwings(task: ServeTask, { seeds }: CheckEffort): KnobSwing<Figure>[] {
  const [seed] = seeds as readonly [number];
  return serveKnobs(task).map(({ knob, bins }) => {
    const values = bins.flatMap((bin) => bin.values);
    const ends = [values[0], values.at(-1)!].map((value) =>
      playTask(task, seed, () => withKnob(task.defaultAction, knob, value)),
    ) as [PlayedTask, PlayedTask];
    return knobSwing(knob, FIGURES, ends);
  });
}

function everyKnobActs(task: ServeTask, swings: readonly KnobSwing<Figure>[]): CheckResult {
  const inert = inertKnobs(swings);
  const isEasy = task.difficulty === 'easy';
  return {
    id: 'knobs_act',
    group: 'reaction',
    title: 'every knob changes something that can be seen',
    outcome: inert.length === 0 ? 'pass' : isEasy ? 'note' : 'fail',
    figures: {
      inert: inert.join(', ') || 'none',
      ...(task.maskedKnobs && { masked: task.maskedKnobs.join(', ') }),
    },
    ...(inert.length > 0 && {
      advice: 'A knob that does nothing only adds noise: priorities need several classes, a pool needs load.',
    }),
  };
}

/** A server that serves next to nobody must not look compliant. */
function starvationShows(task: ServeTask, { seeds }: CheckEffort): CheckResult {
  const crowded = scaleArrivals(task, OVERLOAD);
  const starved = { ...task.defaultAction, batch_cap: 1, speculation_depth: 0, kv_budget_fraction: 1 };
  const compliance = meanOver(seeds, (seed) => playTask(crowded, seed, () => starved), 'sloCompliance');
  return {
    id: 'starvation_shows',
    group: 'reaction',
    title: `one sequence at a time under ${OVERLOAD} times the load is not compliant`,
    outcome: compliance < 0.5 ? 'pass' : 'fail',
    figures: { slo_compliance: compliance },
    ...(compliance >= 0.5 && {
      advice:
        'The objectives are so loose, or the load so light, that nobody can fail: tighten the objectives or raise the arrivals.',
    }),
  };
}

function saneDefault(task: ServeTask, { seeds }: CheckEffort): CheckResult {
  const outOfMemory = meanOver(
    seeds,
    (seed) => playTask(task, seed, () => task.defaultAction),
    'outOfMemory',
  );
  return {
    id: 'sane_default',
    group: 'reaction',
    title: 'the default configuration does not run out of memory',
    outcome: outOfMemory === 0 ? 'pass' : 'fail',
    figures: { out_of_memory: outOfMemory },
    ...(outOfMemory > 0 && {
      advice: 'Every comparison with such a default is flattered: give it a smaller kv_budget_fraction.',
    }),
  };
}
