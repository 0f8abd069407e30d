import {
  EPISODE_STEPS,
  GYM_DEFAULT_ACTION,
  type GymAction,
  GymEpisode,
  type GymTask,
  type GymWorld,
} from '@servegym/environments';
import { RandomStream } from '@servegym/simulator';
import type { CheckEffort, CheckResult } from '../../core/checks/check-result.ts';
import { KnobTally } from '../../core/checks/knob-tally.ts';
import { roomToAdapt, tuningPays, WORTH_TUNING } from '../../core/checks/returns.ts';
import { planSchedule, type Schedule } from '../planning/plan-schedule.ts';
import { gymKnobs, valuesOf, withGymKnob } from './gym-knob-values.ts';
import { gymReturn } from './play-gym.ts';

/** A value is held for this many steps, then the plan goes on for as many as `TAIL`. */
const HOLD = 10;
const TAIL = 10;
/** Knobs that must be live decisions. */
const LEAST_LIVE = { easy: 0, medium: 1, hard: 2 } as const;

/**
 * Whether there is something to find, and something to adapt to, beyond the best constant. Arrivals, objectives and weights are those that
 * InferenceGym lays down, so that little room is told and is no failure.
 */
export function checkGymGame(
  world: GymWorld,
  task: GymTask,
  { seeds, states, sweeps }: CheckEffort,
  constant: GymAction,
): CheckResult[] {
  const meanOf = (returnOf: (seed: number) => number) =>
    seeds.reduce((sum, seed) => sum + returnOf(seed), 0) / seeds.length;
  const keeping = (action: GymAction) => meanOf((seed) => gymReturn(world, task, seed, () => action));
  const schedules = seeds.map((seed) => planSchedule(world, task, seed, { start: constant, sweeps }));
  const returns = {
    default: keeping(GYM_DEFAULT_ACTION),
    constant: keeping(constant),
    clairvoyant: schedules.reduce((sum, schedule) => sum + schedule.return, 0) / schedules.length,
  };
  const random = meanOf((seed) => gymReturn(world, task, seed, randomActions(task, seed)));
  const chanceLoses = random < returns.constant - WORTH_TUNING * EPISODE_STEPS;
  return [
    tuningPays(returns, EPISODE_STEPS, constant),
    {
      id: 'chance_loses',
      group: 'game',
      title: 'random actions earn less than a tuned configuration',
      outcome: chanceLoses ? 'pass' : 'fail',
      figures: { random_return: random, best_constant_return: returns.constant },
    },
    roomToAdapt(
      returns,
      task.difficulty,
      'note',
      'A configuration that never changes earns nearly all that a schedule for known traffic earns: in this task the search for it is what is learned. Tasks of llmserve are made for adapting.',
    ),
    knobDominance(world, task, seeds, schedules, states),
  ];
}

function randomActions(task: GymTask, seed: number): () => GymAction {
  const draws = new RandomStream(seed, 'random actions');
  return () => {
    let action = GYM_DEFAULT_ACTION;
    for (const knob of gymKnobs(task)) {
      const values = valuesOf(knob);
      action = withGymKnob(action, knob.knob, values[draws.integer(0, values.length - 1)]);
    }
    return action;
  };
}

/** For states that the schedules visit: which value of each knob, held for ten steps, earns most over twenty. */
function knobDominance(
  world: GymWorld,
  task: GymTask,
  seeds: readonly number[],
  schedules: readonly Schedule[],
  states: number,
): CheckResult {
  const tally = new KnobTally(gymKnobs(task));
  const perEpisode = Math.max(1, Math.round(states / seeds.length));
  const last = EPISODE_STEPS - HOLD - TAIL;
  for (const [e, seed] of seeds.entries()) {
    const { actions } = schedules[e];
    for (let i = 0; i < perEpisode; i++) {
      const at = Math.round((last * (i + 0.5)) / perEpisode);
      tally.add((knob, value) => {
        const episode = new GymEpisode(task, seed, world);
        let earned = 0;
        while (episode.timestep < at + HOLD + TAIL) {
          const step = episode.timestep;
          const isHeld = step >= at && step < at + HOLD;
          const reward = episode.step(isHeld ? withGymKnob(actions[step], knob, value) : actions[step]);
          if (step >= at) earned += reward;
        }
        return earned;
      });
    }
  }
  return tally.result(LEAST_LIVE[task.difficulty], task.difficulty, {
    outcome: 'note',
    advice: 'Wherever a good policy goes, the same values are best: they are found once, and kept.',
  });
}
