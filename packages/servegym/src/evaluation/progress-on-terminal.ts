import type { EvaluationPlan } from '@servegym/agents';

/** Shows the episodes of an evaluation on one line of standard error, where that is a terminal. */
export function progressOnTerminal(): Pick<EvaluationPlan, 'onEpisode'> {
  if (!process.stderr.isTTY) return {};
  return {
    onEpisode({ taskId }, finished, planned) {
      const line = finished < planned ? `${taskId}: episode ${finished} of ${planned}` : '';
      process.stderr.write(`\r\u001b[K${line}`);
    },
  };
}
