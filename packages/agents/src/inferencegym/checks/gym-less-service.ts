import {
  EPISODE_STEPS,
  GYM_DEFAULT_ACTION,
  type GymAction,
  type GymTask,
  type GymWorld,
  inferenceGym,
} from '@servegym/environments';
import type { CheckResult } from '../../core/checks/check-result.ts';
import { gymKnobs, valuesOf, withGymKnob } from './gym-knob-values.ts';

/** KV budgets beside which the other knobs are turned: what a smaller pool saves must not pay for bad service. */
const POOLS = [1, 0.75, 0.5, 0.15];
/** Of the values of a knob with more than six, every other one. */
const FEW_VALUES = 6;

/**
 * Whether anything scores as much as the default that serves fewer requests and violates more objectives, on the same
 * traffic and as the server's grader sees it. Tried are the values of each knob, kept, and each two of them in turn at
 * every step, beside several pools and, where it is free, INT8.
 */
export async function checkLessService(world: GymWorld, task: GymTask, seed: number): Promise<CheckResult> {
  const { grade } = inferenceGym({ world: async () => world });
  const played = async (even: GymAction, odd: GymAction) => {
    const actions = Array.from({ length: EPISODE_STEPS }, (_, step) => (step % 2 === 0 ? even : odd));
    const { score, breakdown } = await grade!({ reset: { task_id: task.id, seed }, actions });
    return {
      score,
      served: Number(breakdown.served_share),
      violated: Number(breakdown.mean_slo_violation_rate),
    };
  };
  const standard = await played(GYM_DEFAULT_ACTION, GYM_DEFAULT_ACTION);
  let tried = 0;
  let serveLess = 0;
  let most = { score: 0, by: 'none' };
  for (const [even, odd] of pairsOf(task)) {
    const { score, served, violated } = await played(even, odd);
    tried++;
    if (served >= standard.served || violated <= standard.violated) continue;
    serveLess++;
    if (score > most.score) most = { score, by: `${shown(task, even)} / ${shown(task, odd)}` };
  }
  const holds = most.score < standard.score;
  return {
    id: 'less_service',
    group: 'exploits',
    title:
      'scores below the default: what serves fewer requests and violates more objectives, kept or flapping',
    outcome: holds ? 'pass' : 'fail',
    figures: {
      tried,
      serve_less: serveLess,
      score: most.score,
      default_score: standard.score,
      by: most.by,
    },
    ...(!holds && {
      advice: 'Bad service pays: look at which part of the score rises with it.',
    }),
  };
}

function* pairsOf(task: GymTask): Generator<readonly [GymAction, GymAction]> {
  const knobs = gymKnobs(task);
  const isActive = (knob: string) => knobs.some((each) => each.knob === knob);
  const bases = (isActive('kv_budget') ? POOLS : [GYM_DEFAULT_ACTION.kv_budget]).flatMap((kv_budget) =>
    (isActive('quant_tier') ? [0, 1] : [0]).map(
      (quant_tier): GymAction => ({ ...GYM_DEFAULT_ACTION, kv_budget, quant_tier: quant_tier as 0 | 1 }),
    ),
  );
  for (const base of bases) {
    for (const turned of knobs) {
      const values = valuesOf(turned).filter((_, i, { length }) => length <= FEW_VALUES || i % 2 === 0);
      for (const [i, value] of values.entries()) {
        for (const other of values.slice(i)) {
          yield [withGymKnob(base, turned.knob, value), withGymKnob(base, turned.knob, other)];
        }
      }
    }
  }
}

function shown({ activeKnobs }: GymTask, action: GymAction): string {
  return activeKnobs.map((knob) => `${knob} ${action[knob]}`).join(', ');
}
