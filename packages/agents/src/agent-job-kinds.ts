import type { JobKinds } from '@servegym/jobs';

// The build renames the modules where it finds this form.
const episodes = new URL('core/evaluate.ts', import.meta.url).href;
const anchors = new URL('planning/anchor-jobs.ts', import.meta.url).href;

/** Job kinds that training, evaluation and recording submit, with their modules. */
export const AGENT_JOB_KINDS: JobKinds = {
  'train-policy': new URL('learning/train-policy.ts', import.meta.url).href,
  'play-episodes': episodes,
  'record-episode': episodes,
  'reference-returns': anchors,
  'fleet-reference-returns': anchors,
  'season-anchors': anchors,
};
