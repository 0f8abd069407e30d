import type { JobKinds } from '@servegym/jobs';

const module = (path: string) => new URL(path, import.meta.url).href;
const episodes = module('core/evaluate.ts');
const anchors = module('planning/anchor-jobs.ts');

/** Job kinds that training, evaluation and recording submit, with their modules. */
export const AGENT_JOB_KINDS: JobKinds = {
  'train-policy': module('learning/train-policy.ts'),
  demonstrate: module('learning/demonstrate.ts'),
  'play-regimes': module('learning/search-regimes.ts'),
  'play-episodes': episodes,
  'record-episode': episodes,
  'episode-return': episodes,
  'reference-returns': anchors,
  'fleet-reference-returns': anchors,
  'season-anchors': anchors,
  'traffic-anchors': anchors,
};
