import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PolicyEvaluator } from './evaluate-policy.ts';
import { parametersOf, withParameters } from './parameters.ts';
import { searchParameters } from './search.ts';
import { tracesOf } from './suite.ts';

const TEXT = `// const parameters are searched
const parameters: Record<string, number> = { load: -1, prefix: 2_0.5e0, none: 0 };
export default { score: (request, replica) =>
  parameters.load * replica.requests_in_flight + parameters.none * replica.index };`;

describe('the parameters of a policy', () => {
  it('are the numbers of one object in its text, and others can stand there', () => {
    assert.deepEqual(parametersOf(TEXT, 'own.ts'), [
      { name: 'load', value: -1 },
      { name: 'prefix', value: 20.5 },
      { name: 'none', value: 0 },
    ]);
    const changed = withParameters(TEXT, [-0.123456, 1e-9, 30]);
    assert.match(changed, /\{ load: -0\.123, prefix: 1e-9, none: 30 \}/);
    assert.equal(changed.split('\n').length, TEXT.split('\n').length);
    assert.throws(() => parametersOf('const x = 1;', 'own.ts'), /own\.ts: expected numbers to search/);
  });

  it('are searched, keep their signs, and are the same again with the same seed', async () => {
    const limits = { seconds: 300, memoryMiB: 512, requests: 300 };
    const evaluator = new PolicyEvaluator(
      'router',
      'train',
      tracesOf('router', 'train', '').slice(0, 2),
      limits,
    );
    const scores: number[] = [];
    try {
      const search = () =>
        searchParameters(
          evaluator,
          [1, 20, 0],
          (numbers) => ({ source: withParameters(BACKWARDS, numbers) }),
          {
            ...{ generations: 2, population: 4, seed: 3 },
            onGeneration: ({ best }) => scores.push(best),
          },
        );
      const { numbers, score } = await search();
      assert.ok(numbers[0] > 0 && numbers[1] > 0);
      assert.equal(score, Math.max(...scores));
      assert.ok(scores[1] >= scores[0]);
      assert.deepEqual((await search()).numbers, numbers);
    } finally {
      evaluator.close();
    }
  });
});

const BACKWARDS = TEXT.replace('load: -1', 'load: 1').replaceAll(/: (Record<[^>]+>)/g, '');
