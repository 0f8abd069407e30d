import type { JobKinds } from '@servegym/jobs';

/** Job kinds that training, evaluation and recording submit, with their modules. */
export const AGENT_JOB_KINDS: JobKinds = {
  'train-policy': new URL('learning/train-policy.ts', import.meta.url).href,
  demonstrate: new URL('learning/demonstrate.ts', import.meta.url).href,
  'play-regimes': new URL('learning/search-regimes.ts', import.meta.url).href,
  'play-episodes': new URL('core/evaluate.ts', import.meta.url).href,
  'record-episode': new URL('core/evaluate.ts', import.meta.url).href,
  'episode-return': new URL('core/evaluate.ts', import.meta.url).href,
  'reference-returns': new URL('planning/reference-job.ts', import.meta.url).href,
  'fleet-reference-returns': new URL('planning/fleet-reference-job.ts', import.meta.url).href,
  'season-anchors': new URL('planning/season-anchors-job.ts', import.meta.url).href,
  'traffic-anchors': new URL('core/traffic-anchors-job.ts', import.meta.url).href,
};
