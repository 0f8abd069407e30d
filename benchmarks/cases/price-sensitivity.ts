import { AGENTS } from '@servegym/agents';
import { firstSeeds, llmserve, ServeEpisode } from '@servegym/environments';
import { mean } from '@servegym/simulator/statistics';
import { benchmark } from '../harness.ts';

/** Agents that change what they do with the rewards that they see, and planners, whose plans are made for the prices. */
const READS_PRICES = ['any-server', 'steady-state', 'rule', 'mpc', 'mpc-unshifted', 'oracle'];
const NAMES = AGENTS.llmserve.policies.map(({ name }) => name).filter((name) => !READS_PRICES.includes(name));

type Parts = ServeEpisode['components'];
type Part = keyof Parts;
const PRICES: readonly { readonly price: string; readonly part: Part | null; readonly factor: number }[] = [
  { price: 'as they are', part: null, factor: 1 },
  ...(['memory', 'quality', 'cost'] as const).flatMap((part) =>
    [0.5, 2].map((factor) => ({ price: `${part} x${factor}`, part, factor })),
  ),
];

export default benchmark({
  what: 'Rankings of the agents on the test split when each price of the reward is halved and doubled. No agent here reads the prices, so that each episode is played once and paid anew under every price.',
  options: { episodes: 20 },
  *run({ episodes }) {
    for (const taskId of llmserve.tasks.shippedIds) {
      const task = llmserve.tasks.shipped[taskId];
      const traffic = firstSeeds('test', episodes).map((seed) => ({
        seed,
        requests: llmserve.drawRequests(task, seed),
      }));
      const played = NAMES.map((agent) => ({
        agent,
        windows: traffic.map((each) => partsOf(agent, taskId, each)),
      }));
      for (const { price, part, factor } of PRICES) {
        const returns = played.map(({ agent, windows }) => ({
          agent,
          return: mean(windows.map((each) => repaid(each, part, factor))),
        }));
        const ranking = returns.sort((a, b) => b.return - a.return);
        const told = ranking.map((each) => `${each.agent} ${each.return.toFixed(1)}`).join(', ');
        yield { task: taskId, price, 'ranking, mean return': told };
      }
    }
  },
});

/** Parts of the reward of each window. */
function partsOf(
  agent: string,
  taskId: (typeof llmserve.tasks.shippedIds)[number],
  { seed, requests }: { readonly seed: number; readonly requests: ReturnType<typeof llmserve.drawRequests> },
): Parts[] {
  const policy = AGENTS.llmserve.createPolicy(agent);
  policy.reset({ taskId, seed });
  const episode = new ServeEpisode(llmserve.tasks.shipped[taskId], seed, { requests });
  const windows: Parts[] = [];
  let reward: number | null = null;
  while (!episode.done) {
    const { action: previousAction, window: stepIndex } = episode;
    const observation = episode.observation();
    reward = episode.step(policy.act({ observation, reward, previousAction, stepIndex }));
    windows.push(episode.components);
  }
  return windows;
}

/** Return of an episode with one part of its rewards at another price. */
function repaid(windows: readonly Parts[], part: Part | null, factor: number): number {
  let total = 0;
  for (const parts of windows) {
    const { throughput, slo, memory, cost, quality } = parts;
    const sum = throughput + slo + memory + cost + quality + (part === null ? 0 : (factor - 1) * parts[part]);
    total += Math.max(-1, Math.min(1, sum));
  }
  return total;
}
