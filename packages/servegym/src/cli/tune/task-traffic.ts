import { SEED_SPLITS } from '@servegym/environments';
import { joinBlocks, type SplitTraffic, sliceTrace } from '@servegym/operators';
import { taskTrace } from '../arguments/traffic.ts';

const EPISODES = 20;

/**
 * The traffic of episodes of a task, a block from each: those of training to search on, those of the test split held
 * out. Of long episodes a block is a stretch, early in the first and late in the last. What tenants take of the memory is
 * left out.
 *
 * @param most Requests in all.
 */
export function taskTraffic(id: string, most: number): SplitTraffic {
  const size = Math.floor(most / (2 * EPISODES));
  const blocksFrom = (first: number) =>
    joinBlocks(
      Array.from({ length: EPISODES }, (_, i) => {
        const episode = taskTrace(id, first + i);
        const requests = episode.trace.arrivalMs.length;
        const length = Math.min(size, requests - 1);
        const start = Math.floor(((i + 0.5) / EPISODES) * (requests - length));
        return sliceTrace(episode, start, start + length);
      }),
    );
  return { search: blocksFrom(SEED_SPLITS.train.first), heldOut: blocksFrom(SEED_SPLITS.test.first) };
}
