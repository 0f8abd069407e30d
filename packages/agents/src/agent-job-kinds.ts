import type { JobKinds } from '@servegym/jobs';

/** Job kinds that training, evaluation and recording submit, with their modules. */
export const AGENT_JOB_KINDS: JobKinds = {
  'train-policy': new URL('training/train-policy.ts', import.meta.url).href,
  demonstrate: new URL('llmserve/learn/demonstrate.ts', import.meta.url).href,
  'play-regimes': new URL('llmserve/learn/search-regimes.ts', import.meta.url).href,
  'play-episodes': new URL('llmserve/evaluate-serve.ts', import.meta.url).href,
  'record-episode': new URL('llmserve/record-episode-job.ts', import.meta.url).href,
  'reference-returns': new URL('llmserve/planning/reference-job.ts', import.meta.url).href,
  'fleet-reference-returns': new URL('fleet/planning/fleet-reference-job.ts', import.meta.url).href,
  'season-anchors': new URL('llmserve/planning/season-anchors-job.ts', import.meta.url).href,
  'policy-returns': new URL('llmserve/policy-returns-job.ts', import.meta.url).href,
  'traffic-anchors': new URL('llmserve/traffic-anchors-job.ts', import.meta.url).href,
};
