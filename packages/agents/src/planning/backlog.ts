import type { ServeEpisode } from '@servegym/environments';

/** Reward that a window earns less while the server works off a backlog. */
const COST_OF_A_WINDOW = 0.9;
/** Tokens that a server emits in a window when it has to, over those that arrive in a window of the mean. */
const CAPACITY_OVER_MEAN = 2;

/** Output tokens that a window brings, on average over the task's phases. */
export function meanWindowTokens({ task }: ServeEpisode): number {
  let tokens = 0;
  let weights = 0;
  for (const { weight, windows, arrivalsPerSecond, traffic } of task.phases) {
    const share = weight * (windows[0] + windows[1]);
    const rate = (arrivalsPerSecond[0] + arrivalsPerSecond[1]) / 2;
    let perRequest = 0;
    // The mean of a log-normal is exp(sigma^2 / 2) times its median.
    for (const { share: part, output } of Object.values(traffic)) {
      perRequest += part * output.median * Math.exp((output.sigma * output.sigma) / 2);
    }
    tokens += share * rate * task.windowSeconds * perRequest;
    weights += share;
  }
  return tokens / weights;
}

/**
 * Cost of the requests that wait at the end of the last window in the windows after it: the windows that it
 * takes to serve them, at most those that are left.
 * @param meanTokens `meanWindowTokens` of the task
 */
export function backlogCost({ task, window, metrics }: ServeEpisode, meanTokens: number): number {
  const windows = metrics.owedTokens / (CAPACITY_OVER_MEAN * meanTokens);
  return COST_OF_A_WINDOW * Math.min(task.windows - window, windows);
}
