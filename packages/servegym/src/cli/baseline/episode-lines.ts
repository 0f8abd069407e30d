import { type BaselineTask, type BaselineWatcher, validAnswers } from './run-baseline.ts';

/** Digits of a printed score: it stays strictly inside (0, 1). */
const LEAST_SCORE = 0.001;
const LONGEST_ERROR = 300;

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
