import { type BaselineResult, type BaselineTask, type BaselineWatcher, validAnswers } from '@servegym/agents';
import { alignedRows } from '@servegym/operators/report';

/** Least printed score: three digits stay strictly inside (0, 1). */
const LEAST_SCORE = 0.001;
const LONGEST_ERROR = 300;

/** A baseline for people. */
export function baselineTable(result: BaselineResult): string {
  const isModel = result.usage !== null;
  const rows = [
    ['task', 'score', 'return', 'steps', 'wall, s', ...(isModel ? ['invalid', 'kept last'] : [])],
  ];
  for (const { task_id, score, return: total, steps, wall_s, answers } of result.tasks) {
    rows.push([
      String(task_id ?? result.environment),
      score.toFixed(3),
      total.toFixed(2),
      String(steps),
      wall_s.toFixed(1),
      ...(answers ? [String(answers.invalid), String(answers.keptLast)] : []),
    ]);
  }
  const player = isModel ? `${result.model} at ${result.api_base_url}` : result.agent;
  const lines = [`${result.environment}, seed ${result.seed}: ${player}`, '', ...alignedRows(rows), ''];
  lines.push(`mean score ${result.mean_score.toFixed(3)}`);
  if (result.usage !== null) {
    const { calls, failedCalls, promptTokens, completionTokens, cost_usd, format } = result.usage;
    lines.push(
      `${calls} calls (${failedCalls} failed), ${promptTokens} prompt and ${completionTokens} completion tokens, answers as ${format}`,
      cost_usd === null
        ? 'cost unknown: give --input-price and --output-price'
        : `cost ${cost_usd.toFixed(4)} USD`,
    );
  }
  return lines.join('\n');
}

/** The lines that OpenEnv's inference scripts print. */
export interface EpisodeLines {
  readonly watcher: BaselineWatcher;
  /** Ends an episode that an error cut short, or one that never began. */
  abandon(label: string): void;
}

/**
 * Prints one line at each start, step and end of an episode. An episode is a success when the model chose at least one
 * of its actions and it scored more than `successScore`.
 */
export function episodeLines(
  environment: string,
  model: string,
  successScore: number,
  print: (line: string) => void,
): EpisodeLines {
  let rewards: number[] | null = null;
  let hasStarted = false;

  function start(label: string | number): void {
    rewards = [];
    hasStarted = true;
    print(`[START] task=${label} env=${environment} model=${model}`);
  }

  function end(success: boolean, score: number): void {
    const list = (rewards ?? []).map((reward) => reward.toFixed(2)).join(',');
    print(`[END] success=${success} steps=${rewards?.length ?? 0} score=${score.toFixed(3)} rewards=${list}`);
    rewards = null;
  }

  return {
    watcher: {
      started: start,
      stepped(_, step, { action, reward, done, error }) {
        rewards?.push(reward);
        const problem = error === null ? 'null' : error.replaceAll(/\s+/g, ' ').slice(0, LONGEST_ERROR);
        print(
          `[STEP] step=${step} action=${JSON.stringify(action)} reward=${reward.toFixed(2)} done=${done} error=${problem}`,
        );
      },
      graded(task: BaselineTask) {
        const score = Math.min(1 - LEAST_SCORE, Math.max(LEAST_SCORE, task.score));
        end(task.complete && validAnswers(task) > 0 && task.score > successScore, score);
      },
    },
    abandon(label) {
      if (!hasStarted) start(label);
      if (rewards !== null) end(false, 0);
    },
  };
}
