import {
  type EpisodeRequests,
  llmserve,
  type ServeAction,
  ServeEpisode,
  type ServeTask,
} from '@servegym/environments';
import { playRule, type RuleParameters, type ServeRule, UNTUNED_RULE } from '../policies/rule-policy.ts';
import { climbCoordinates } from './coordinate-climb.ts';
import { trainingTraces } from './trace-schedule.ts';

/** Values that the search tries for each parameter. */
const GRID: { readonly [Name in keyof RuleParameters]: readonly number[] } = {
  kvTarget: [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95],
  headroomGb: [0, 1, 2, 4, 6, 9, 12],
  batchCap: [16, 24, 32, 48, 64, 96, 128, 192, 256, 512],
  calmDepth: [0, 1, 2, 3, 4, 5, 6, 8],
  busyDepth: [0, 1, 2, 3, 4, 5, 6, 8],
  busyRate: [2, 3, 4, 6, 8, 10, 12, 16, 20],
};
/** The other batch cap that the search starts from. */
const LARGE_CAP = 256;

export interface TunedRule {
  readonly rule: ServeRule;
  /** Of an episode, over the traces. */
  readonly meanReturn: number;
}

/**
 * Looks for the parameters with which the rule earns most on the training split, from the batch cap of `kept` and from a
 * large one; see `climbCoordinates`.
 * @param kept configuration that the rule starts from, the best constant of the task
 */
export function tuneRule(
  task: ServeTask,
  kept: ServeAction,
  {
    seed,
    traces,
  }: { readonly seed: number; readonly traces: { readonly few: number; readonly many: number } },
): TunedRule {
  const drawn = trainingTraces(seed, traces.many).map((trace) => ({
    ...{ seed: trace, requests: llmserve.drawRequests(task, trace) },
  }));
  const { batch_cap, speculation_depth: depth } = kept;
  const { parameters, meanReturn } = climbCoordinates(
    {
      ...{ grid: GRID, traces },
      play: (each, trace) => ruleReturn(task, { kept, parameters: each }, drawn[trace]!),
    },
    [batch_cap, LARGE_CAP].map((batchCap) => ({
      ...{ ...UNTUNED_RULE, batchCap, calmDepth: depth, busyDepth: depth },
    })),
  );
  return { rule: { kept, parameters }, meanReturn };
}

/** Return of an episode that the rule plays. */
export function ruleReturn(
  task: ServeTask,
  rule: ServeRule,
  { seed, requests }: { readonly seed: number; readonly requests: EpisodeRequests },
): number {
  const act = playRule(task, rule);
  const episode = new ServeEpisode(task, seed, { requests });
  while (!episode.done) {
    const { action: previousAction, window: stepIndex } = episode;
    episode.step(act({ observation: episode.observation(), previousAction, stepIndex }));
  }
  return episode.totals.reward;
}
