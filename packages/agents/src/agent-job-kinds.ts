import type { JobKinds } from '@servegym/jobs';

// The build renames the modules where it finds this form.
const anchors = new URL('planning/anchor-jobs.ts', import.meta.url).href;

/** Job kinds that training and evaluation submit, with their modules. */
export const AGENT_JOB_KINDS: JobKinds = {
  'train-policy': new URL('learning/train-policy.ts', import.meta.url).href,
  'play-episodes': new URL('core/evaluate.ts', import.meta.url).href,
  'reference-returns': anchors,
  'fleet-reference-returns': anchors,
  'season-anchors': anchors,
};
