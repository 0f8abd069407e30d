import {
  drawRequests,
  recordedReference,
  type ServeAction,
  type ServeTask,
  taskFingerprint,
} from '@servegym/environments';
import { RandomStream } from '@servegym/simulator';
import type { CheckEffort, CheckResult } from '../../core/checks/check-result.ts';
import { roomToAdapt, tuningPays, WORTH_TUNING } from '../../core/checks/returns.ts';
import { tuneConstant, tunePhase } from '../learn/tune-constant.ts';
import { planClairvoyant } from '../planning/plan-clairvoyant.ts';
import { checkKnobDominance, type GoodEpisode } from './knob-dominance.ts';
import { serveKnobs } from './knob-values.ts';
import { meanOver, playTask } from './play-task.ts';

export interface GameChecks {
  readonly results: readonly CheckResult[];
  readonly bestConstant: ServeAction;
}

/** Whether there is something to find, and something to adapt to. */
export async function checkGame(task: ServeTask, effort: CheckEffort): Promise<GameChecks> {
  const { seeds, states } = effort;
  const { constant, phases } = await configurations(task, effort);
  const returnsOf = (action: ServeAction) =>
    meanOver(seeds, (seed) => playTask(task, seed, () => action), 'return');
  const episodes: (GoodEpisode & { readonly return: number })[] = seeds.map((seed) => {
    const requests = drawRequests(task, seed);
    const options = { requests, configurations: [constant, ...phases, task.defaultAction] };
    return { seed, requests, ...planClairvoyant(task, seed, options) };
  });
  const returns = {
    default: returnsOf(task.defaultAction),
    constant: returnsOf(constant),
    clairvoyant: episodes.reduce((sum, episode) => sum + episode.return, 0) / episodes.length,
  };
  const results = [
    tuningPays(returns, task.windows, constant),
    chanceLoses(task, effort, returns.default),
    roomToAdapt(returns, task.difficulty, 'fail'),
    checkKnobDominance(task, episodes, states),
  ];
  return { results, bestConstant: constant };
}

interface Configurations {
  readonly constant: ServeAction;
  /** The best constants of the phases, each played alone: what an adaptive policy might change between. */
  readonly phases: readonly ServeAction[];
}

/** Those that `servegym oracle` recorded, where they still hold; else those of a shorter search. */
async function configurations(task: ServeTask, { traces }: CheckEffort): Promise<Configurations> {
  const recorded = recordedReference(task.id);
  if (recorded?.fingerprint === taskFingerprint(task)) {
    return { constant: recorded.constant, phases: Object.values(recorded.phases) };
  }
  const options = { taskId: task.id, seed: 0, traces };
  const { action: constant } = await tuneConstant(options);
  if (task.phases.length === 1) return { constant, phases: [] };
  const phases: ServeAction[] = [];
  for (const phase of task.phases) phases.push((await tunePhase(phase, options)).action);
  return { constant, phases };
}

function chanceLoses(task: ServeTask, { seeds }: CheckEffort, defaultReturn: number): CheckResult {
  const random = meanOver(seeds, (seed) => playTask(task, seed, randomActions(task, seed)), 'return');
  return {
    id: 'chance_loses',
    group: 'game',
    title: 'random actions earn less than the default',
    outcome: random < defaultReturn - WORTH_TUNING * task.windows ? 'pass' : 'fail',
    figures: { random_return: random, default_return: defaultReturn },
    ...(random >= defaultReturn - WORTH_TUNING * task.windows && {
      advice: 'Chance does as well as an operator: the default is no sane choice, or nothing matters.',
    }),
  };
}

function randomActions(task: ServeTask, seed: number): () => ServeAction {
  const draws = new RandomStream(seed, 'random actions');
  const knobs = serveKnobs(task);
  return () => {
    const action: Record<string, unknown> = { ...task.defaultAction };
    for (const { knob, bins } of knobs) {
      const values = bins.flatMap((bin) => bin.values);
      action[knob] = values[draws.integer(0, values.length - 1)];
    }
    return action as ServeAction;
  };
}
