import { concurrencyOf, type MeasuredLoad, mostOf } from './measured-load.ts';

/** Gaps of loads that leave coefficients undetermined, in sentences. */
export function gapsOf(loads: readonly MeasuredLoad[]): string[] {
  const requests = loads.flatMap((load) => load.requests);
  const running = loads.flatMap(concurrencyOf);
  const gaps: string[] = [];
  if (running.every((count) => count < 4) || spreadOf(running) < 2) {
    gaps.push(
      `The number of requests at once hardly varies (${range(running)}): what an iteration costs and what each sequence adds to it cannot be told apart. Add a load with another rate.`,
    );
  }
  const inputs = requests.map(({ inputTokens }) => inputTokens);
  if (spreadOf(inputs) < 1.5) {
    gaps.push(
      `Prompts are of about one length (${range(inputs)} tokens): the cost of a prompt token and the overhead of a request cannot be told apart. Add a load with other prompts.`,
    );
  }
  const contexts = requests.map(({ inputTokens, outputTokens }) => inputTokens + outputTokens / 2);
  if (spreadOf(contexts) < 1.5) {
    gaps.push(
      `Contexts are of about one length (${range(contexts)} tokens): the cost of a sequence and that of its context cannot be told apart. Add a load with longer prompts or outputs.`,
    );
  }
  return gaps;
}

/** Ratio of the 90th to the 10th percentile. */
function spreadOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(0.9 * (sorted.length - 1))] / sorted[Math.floor(0.1 * (sorted.length - 1))];
}

function range(values: readonly number[]): string {
  const least = values.reduce((low, value) => Math.min(low, value), Number.POSITIVE_INFINITY);
  const [low, high] = [least, mostOf(values)].map(Math.round);
  return low === high ? `${low}` : `${low} to ${high}`;
}
