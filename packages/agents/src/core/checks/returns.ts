import type { CheckResult } from './check-result.ts';

/** Least gain of a step, in reward, that makes looking for a configuration worth while. */
export const WORTH_TUNING = 0.01;
/** Room to adapt that a task of each difficulty must have. */
const LEAST_ROOM = { easy: 0, medium: 0.08, hard: 0.12 } as const;

/** Mean returns of a task's default, its best constant, and a planner that knows the traffic to come. */
export interface Returns {
  readonly default: number;
  readonly constant: number;
  readonly clairvoyant: number;
}

/** Whether the best constant earns more than the default. */
export function tuningPays(returns: Returns, steps: number, constant: object): CheckResult {
  const gain = (returns.constant - returns.default) / steps;
  return {
    id: 'tuning_pays',
    group: 'game',
    title: 'a tuned configuration beats the default',
    outcome: gain >= WORTH_TUNING ? 'pass' : 'fail',
    figures: {
      default_return: returns.default,
      best_constant_return: returns.constant,
      gain_per_window: gain,
      best_constant: JSON.stringify(constant),
    },
    ...(gain < WORTH_TUNING && {
      advice:
        'The task is trivial: whatever is set earns the same. Raise the load until something has to give, and price what is given.',
    }),
  };
}

/** Whether there is something to adapt to. */
export function roomToAdapt(
  returns: Returns,
  difficulty: keyof typeof LEAST_ROOM,
  otherwise: 'fail' | 'note',
  advice = 'One configuration does nearly all there is to do. Let phases want opposite things for long enough to repay a change, or call the task easy.',
): CheckResult {
  const reach = returns.clairvoyant - returns.default;
  const room = reach <= 1e-9 ? 0 : Math.max(0, returns.clairvoyant - returns.constant) / reach;
  const least = LEAST_ROOM[difficulty];
  return {
    id: 'room_to_adapt',
    group: 'game',
    title: `a policy that adapts beats the best constant: room of at least ${least} for ${difficulty}`,
    outcome: room >= least ? 'pass' : otherwise,
    figures: {
      default_return: returns.default,
      best_constant_return: returns.constant,
      clairvoyant_return: returns.clairvoyant,
      room,
    },
    ...(room < least && { advice }),
  };
}
