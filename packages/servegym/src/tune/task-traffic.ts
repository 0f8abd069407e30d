import { generateWorkload, SEED_SPLITS, SERVE_TASKS, TASK_IDS, type TaskId } from '@servegym/environments';
import { msFromTicks, type Trace } from '@servegym/simulator';
import { joinBlocks, type SplitTraffic } from './traffic.ts';

/** The tasks whose traffic can be tuned for. */
export const TUNABLE_TASKS: readonly TaskId[] = TASK_IDS;

const MOST_EPISODES = 20;
const FEWEST_EPISODES = 4;

/**
 * The traffic of episodes of a task, an episode a block: those of training to search on, those of the test split held
 * out. Priority classes are left out, and so is what tenants take of the memory.
 *
 * @param most Requests in all, as far as a few episodes stay below it.
 */
export function taskTraffic(id: TaskId, most: number): SplitTraffic {
  const task = SERVE_TASKS[id];
  const durationMs = 1000 * task.windows * task.windowSeconds;
  const blocksFrom = (first: number) => {
    const blocks = [];
    for (let seed = first, requests = 0; blocks.length < MOST_EPISODES; seed += 1) {
      const block = { trace: episodeTrace(id, seed), durationMs };
      requests += block.trace.arrivalMs.length;
      if (blocks.length >= FEWEST_EPISODES && 2 * requests > most) break;
      blocks.push(block);
    }
    return joinBlocks(blocks);
  };
  return { search: blocksFrom(SEED_SPLITS.train.first), heldOut: blocksFrom(SEED_SPLITS.test.first) };
}

function episodeTrace(id: TaskId, seed: number): Trace {
  const { arrivalTicks, inputTokens, outputTokens } = generateWorkload(SERVE_TASKS[id], seed);
  return { source: id, arrivalMs: arrivalTicks.map(msFromTicks), inputTokens, outputTokens };
}
