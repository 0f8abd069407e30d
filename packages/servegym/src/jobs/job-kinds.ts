import type { JobKinds } from '@servegym/agents/jobs';

/** The kinds of jobs that commands submit, and the module that does each. */
export const JOB_KINDS: JobKinds = {
  'record-episode': new URL('../datasets/record-job.ts', import.meta.url).href,
  'play-episodes': new URL('../evaluation/play-episodes-job.ts', import.meta.url).href,
  'reference-returns': new URL('../oracle/reference-job.ts', import.meta.url).href,
  'play-regimes': new URL('../training/play-regimes-job.ts', import.meta.url).href,
  'policy-returns': new URL('../agent-benchmark/returns-job.ts', import.meta.url).href,
  'traffic-anchors': new URL('../agent-benchmark/anchors-job.ts', import.meta.url).href,
  demonstrate: new URL('../training/demonstrate-job.ts', import.meta.url).href,
  'train-policy': new URL('../training/train-policy-job.ts', import.meta.url).href,
  fidelity: new URL('../fidelity/fidelity-job.ts', import.meta.url).href,
  'tune-measure': new URL('../tune/measure-candidates.ts', import.meta.url).href,
};
