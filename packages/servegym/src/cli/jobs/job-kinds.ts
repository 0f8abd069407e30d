import type { JobKinds } from '@servegym/jobs';
import { TUNE_JOB_KINDS } from '@servegym/tuning';

/** The kinds of jobs that commands submit, and the module that does each. */
export const JOB_KINDS: JobKinds = {
  'record-episode': new URL('../datasets/record-job.ts', import.meta.url).href,
  'play-episodes': new URL('../evaluate/play-episodes-job.ts', import.meta.url).href,
  'reference-returns': new URL('../oracle/reference-job.ts', import.meta.url).href,
  'play-regimes': new URL('../train/play-regimes-job.ts', import.meta.url).href,
  'policy-returns': new URL('../bench/agents/returns-job.ts', import.meta.url).href,
  'traffic-anchors': new URL('../bench/agents/anchors-job.ts', import.meta.url).href,
  demonstrate: new URL('../train/demonstrate-job.ts', import.meta.url).href,
  'train-policy': new URL('../train/train-policy-job.ts', import.meta.url).href,
  fidelity: new URL('../fidelity/fidelity-job.ts', import.meta.url).href,
  ...TUNE_JOB_KINDS,
};
