import { AGENTS, type PolicyStep, playEpisode } from '@servegym/agents';
import {
  llmserve,
  SEED_SPLITS,
  type ServeAction,
  type ServeObservation,
  type TaskId,
} from '@servegym/environments';
import type { ShippedName } from '../../packages/agents/src/policies/serve-policies.ts';
import { benchmark } from '../harness.ts';

/** Times that the decisions of all traces are taken again; the fastest counts. */
const ROUNDS = 10;

type Step = PolicyStep<ServeAction, ServeObservation>;

export default benchmark({
  what: 'What the policies that come with the package gain over the best constant, as a share of what the planner without foresight gains, on the test traces that it has played, and microseconds of a decision (encoding the observation, the network, decoding the action), on one core.',
  options: {},
  async *run() {
    const { shippedPolicies } = AGENTS.llmserve;
    const agents = shippedPolicies.names.filter(shippedPolicies.isShipped);
    for (const taskId of llmserve.tasks.shippedIds)
      for (const agent of agents) yield await measure(agent, taskId);
  },
});

async function measure(agent: ShippedName, taskId: TaskId) {
  const { first, last } = SEED_SPLITS.test;
  const traces = Object.entries(llmserve.anchors.reference(taskId)?.seeds ?? {}).flatMap(
    ([name, returns]) => {
      const seed = Number(name);
      return seed >= first && seed <= last && returns.planner !== undefined
        ? [{ ...returns, seed, planner: returns.planner }]
        : [];
    },
  );
  const policy = AGENTS.llmserve.createPolicy(agent);
  const environment = AGENTS.llmserve.playable();
  const instance = environment.create();
  const episodes: { seed: number; steps: Step[] }[] = [];
  const gains = { agent: 0, planner: 0 };
  for (const { seed, planner, constant } of traces) {
    const steps: Step[] = [];
    const watched = {
      name: agent,
      reset: (episode: Parameters<typeof policy.reset>[0]) => policy.reset(episode),
      act(step: Step) {
        steps.push(step);
        return policy.act(step);
      },
    };
    const plan = { taskId, seed, initialAction: environment.initialAction(taskId) };
    gains.agent += ((await playEpisode(instance, watched, plan)).return - constant) / traces.length;
    gains.planner += (planner - constant) / traces.length;
    episodes.push({ seed, steps });
  }
  await instance.close?.();
  let fastest = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const started = performance.now();
    let decisions = 0;
    for (const { seed, steps } of episodes) {
      policy.reset({ taskId, seed });
      for (const step of steps) policy.act(step);
      decisions += steps.length;
    }
    fastest = Math.min(fastest, (1000 * (performance.now() - started)) / decisions);
  }
  return {
    task: taskId,
    agent,
    traces: traces.length,
    gain: gains.agent,
    'gain of the planner': gains.planner,
    // Where the best constant is all but optimal, shares of what is left say nothing.
    share: gains.planner > 1 ? gains.agent / gains.planner : null,
    'decision, us': fastest,
  };
}
