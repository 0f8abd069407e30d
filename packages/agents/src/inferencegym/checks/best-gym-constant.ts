import {
  GYM_DEFAULT_ACTION,
  type GymAction,
  type GymTask,
  type GymWorld,
  SEED_SPLITS,
} from '@servegym/environments';
import { gymKnobs, valuesOf, withGymKnob } from './gym-knob-values.ts';
import { gymReturn } from './play-gym.ts';

/** The configuration that earns most on training traffic when it is kept, one knob at a time, from two starts. */
export function bestGymConstant(world: GymWorld, task: GymTask, traces: number): GymAction {
  const mean = (action: GymAction) => {
    let sum = 0;
    for (let i = 0; i < traces; i++) sum += gymReturn(world, task, SEED_SPLITS.train.first + i, () => action);
    return sum / traces;
  };
  let best = GYM_DEFAULT_ACTION;
  let most = mean(best);
  for (const start of [GYM_DEFAULT_ACTION, world.calibration(task).best]) {
    let action = start;
    let reached = mean(action);
    for (let gained = true; gained; ) {
      gained = false;
      for (const turned of gymKnobs(task)) {
        for (const value of valuesOf(turned)) {
          const tried = withGymKnob(action, turned.knob, value);
          const earned = mean(tried);
          if (earned <= reached) continue;
          reached = earned;
          action = tried;
          gained = true;
        }
      }
    }
    if (reached <= most) continue;
    most = reached;
    best = action;
  }
  return best;
}
