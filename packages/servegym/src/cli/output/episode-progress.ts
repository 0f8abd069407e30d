import type { EvaluationPlan } from '@servegym/agents';
import { showProgress } from './progress-line.ts';

/** Shows the episodes of an evaluation. */
export const showEpisode: NonNullable<EvaluationPlan['onEpisode']> = ({ taskId }, finished, planned) =>
  showProgress(finished < planned ? `${taskId}: episode ${finished} of ${planned}` : '');
