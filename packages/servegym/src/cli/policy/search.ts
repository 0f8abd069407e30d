import { CrossEntropySearch } from '@servegym/agents';
import { mean } from '@servegym/simulator/statistics';
import { whole } from '../arguments/options.ts';
import { defineCommand } from '../command-table.ts';
import { readInputFile, writeOutputFile } from '../files.ts';
import { printResult } from '../output/print-result.ts';
import { options, showTraces, withEvaluator } from './command.ts';
import { type PolicyEvaluator, playedPolicy } from './evaluate-policy.ts';
import { parametersOf, withParameters } from './parameters.ts';
import { comparePolicies, searchForm } from './report.ts';
import { combinedScore } from './score.ts';
import type { PlayedPolicy } from './trial-host.ts';

/** Standard deviation of the first generation: of the logarithm of a number, of a number that is 0. Choices. */
const FIRST_DEVIATION = 0.7;
/** Share of a generation that the next is drawn after, and share of the old distribution that stays. Choices. */
const ELITE_SHARE = 0.25;
const SMOOTHING = 0.3;

/** A generation of a search: scores on the traces that it was searched on. */
export interface Generation {
  readonly generation: number;
  readonly best: number;
  readonly mean: number;
}

type SearchPlan = Readonly<Record<'generations' | 'population' | 'seed', number>> & {
  readonly onGeneration: (done: Generation) => void;
};

/**
 * Looks for better numbers of a policy by the cross-entropy method. A number keeps its sign, as its logarithm is drawn; one
 * that is 0 is drawn itself. Answers the numbers with the highest score, which may be the first.
 */
export async function searchParameters(
  evaluator: PolicyEvaluator,
  start: readonly number[],
  policyOf: (numbers: readonly number[]) => PlayedPolicy,
  { generations, population, seed, onGeneration }: SearchPlan,
): Promise<{ readonly numbers: readonly number[]; readonly score: number }> {
  const search = new CrossEntropySearch({
    ...{ seed, population, smoothing: SMOOTHING },
    elite: Math.max(2, Math.round(ELITE_SHARE * population)),
    numbers: start.map(() => ({ mean: 0, deviation: FIRST_DEVIATION })),
  });
  const moved = (by: readonly number[]) =>
    start.map((value, i) => (value === 0 ? by[i] : value * Math.exp(by[i])));
  let best = { numbers: start, score: Number.NEGATIVE_INFINITY };
  for (let generation = 1; generation <= generations; generation++) {
    const points = search.draw();
    const scores: number[] = [];
    for (const by of points) {
      const numbers = moved(by);
      const { traces } = await evaluator.evaluate('', undefined, policyOf(numbers));
      const { score } = combinedScore(traces.map(({ values }) => values));
      scores.push(score);
      if (score > best.score) best = { numbers, score };
    }
    search.learn(points, scores);
    onGeneration({ generation, best: best.score, mean: mean(scores) });
  }
  return best;
}

export const searchCommand = () =>
  defineCommand({
    words: { file: { value: '<file>', help: 'module of a policy (.ts, .js or .py)' } },
    options: {
      suite: options.suite,
      generations: whole('<n>', 1, 10_000, 'generations of the search', 10),
      population: whole('<n>', 4, 10_000, 'policies of a generation', 16),
      seed: whole('<n>', 0, Number.MAX_SAFE_INTEGER, 'seed of the search', 0),
      traces: options.traces,
      requests: options.requests,
      timeLimit: options.timeLimit,
      memory: options.memory,
      output: { value: '<file>', writes: true, help: 'write the policy with the numbers that were found' },
      json: options.json,
    },
    after: `Examples:
  servegym policy search my-router.ts --suite router --requests 5000 --output found.ts`,
    async action({ file, generations, population, seed, output, json, ...given }) {
      const text = await readInputFile(file);
      const parameters = parametersOf(text, file);
      const start = parameters.map(({ value }) => value);
      const policyOf = (numbers: readonly number[]) => playedPolicy(withParameters(text, numbers), file);
      const steps: Generation[] = [];
      const found = await withEvaluator({ ...given, split: 'train', secret: undefined }, (evaluator) =>
        searchParameters(evaluator, start, policyOf, {
          ...{ generations, population, seed },
          onGeneration(step) {
            steps.push(step);
            if (!json)
              console.error(
                `generation ${step.generation}: best ${step.best.toFixed(3)}, mean ${step.mean.toFixed(3)}`,
              );
          },
        }),
      );
      const validated = await withEvaluator(
        { ...given, split: 'validation', secret: undefined },
        async (evaluator) => {
          const before = await evaluator.evaluate(file, showTraces);
          const after = await evaluator.evaluate(output ?? file, showTraces, policyOf(found.numbers));
          return comparePolicies(after, before);
        },
      );
      if (output !== undefined) await writeOutputFile(output, [withParameters(text, found.numbers)]);
      const numbers = Object.fromEntries(
        parameters.map(({ name }, i) => [name, Number(found.numbers[i].toPrecision(3))]),
      );
      printResult(
        json,
        { parameters: numbers, trainScore: found.score, generations: steps, validation: validated },
        searchForm,
      );
    },
  });
