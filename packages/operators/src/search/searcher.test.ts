import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Searcher, type SearchStage } from './searcher.ts';

interface Point {
  readonly at: number;
}

/** Searches whole numbers; a stage of few blocks sees the score with an error. */
function searcherOf(
  scoreOf: (at: number, blocks: number) => number,
  more: { mayBeKept?: (point: Point) => boolean } = {},
) {
  const played: number[][] = [];
  const searcher = new Searcher<Point, Point & { readonly score: number }, SearchStage>({
    keyOf: ({ at }) => `${at}`,
    kindOf: ({ at }) => (at % 2 === 0 ? 'even' : 'odd'),
    async evaluate(points, { blocks }) {
      played.push(points.map(({ at }) => at));
      return points.map(({ at }) => ({ at, score: scoreOf(at, blocks) }));
    },
    ...more,
  });
  return { searcher, played };
}

const points = (...values: readonly number[]): Point[] => values.map((at) => ({ at }));
const STAGES: readonly SearchStage[] = [
  { name: 'few', blocks: 2 },
  { name: 'all', blocks: Number.POSITIVE_INFINITY, keep: 1 / 4, fewest: 1 },
];

describe('the searcher', () => {
  it('keeps the best of each kind, and says how far a part ranks as all of the traffic does', async () => {
    const { searcher, played } = searcherOf((at, blocks) => (blocks === 2 ? at : -at));
    await searcher.halve(points(1, 2, 3, 4, 5, 6, 7, 8), STAGES);
    assert.deepEqual(played[1].toSorted(), [7, 8]);
    assert.deepEqual(
      searcher.ranked.map(({ at }) => at),
      [7, 8],
    );
    const [{ correlation, beside, blocks, points: compared }] = searcher.agreements;
    assert.deepEqual([correlation, blocks, beside, compared], [-1, 2, null, 2]);
    assert.equal(searcher.considered, 8);
  });

  it('does not evaluate what a bound rules out, and counts it', async () => {
    const { searcher, played } = searcherOf((at) => at, { mayBeKept: ({ at }) => at > 4 });
    await searcher.halve(points(1, 2, 3, 4, 5, 6, 7, 8), STAGES);
    assert.deepEqual(played[0], [5, 6, 7, 8]);
    assert.equal(searcher.ruledOut, 4);
  });

  it('climbs until no neighbour is better, and evaluates none twice', async () => {
    const { searcher, played } = searcherOf((at) => -Math.abs(at - 9));
    await searcher.halve(points(4, 5), STAGES);
    await searcher.climb({ name: 'near', blocks: Number.POSITIVE_INFINITY }, ({ at }) =>
      points(at - 1, at + 1),
    );
    assert.equal(searcher.ranked[0].at, 9);
    const all = played.slice(1).flat();
    assert.equal(new Set(all).size, all.length);
  });
});
