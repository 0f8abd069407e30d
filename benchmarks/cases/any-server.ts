import { readFileSync } from 'node:fs';
import { findPolicy, isPolicyFile } from '@servegym/agents';
import { firstSeeds, llmserve, ServeEpisode } from '@servegym/environments';
import { mean, stratifiedBootstrap } from '@servegym/simulator/statistics';
import { benchmark } from '../harness.ts';

/** Servers and traffic that policies of any server are never trained on, and the task itself. */
const SCENARIOS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'its own task': {},
  'rate x1.5': { shift: 'rate_1.5' },
  'long prompts': { shift: 'long_prompts' },
  L40S: { profile: 'l40s-48gb-llama-3-8b' },
  MI300X: { profile: 'mi300x-192gb-llama-3-8b' },
  'RTX 4090': { profile: 'rtx4090-24gb-llama-3-8b' },
  'Mistral 7B': { profile: 'a100-40gb-mistral-7b' },
  'Azure conversation': { traffic: 'azure-conversation-2023' },
  'Azure code': { traffic: 'azure-code-2023' },
  Mooncake: { traffic: 'mooncake-conversation' },
};

export default benchmark({
  what: 'Mean return over the default, with its 95 % interval, of policies on servers and traffic that policies of any server were never trained on: names of the catalogue, or files of `servegym train`, divided by commas. Every policy plays the same requests.',
  options: {
    policies: 'rule,ppo,any-server',
    task: 'bursty_workload',
    scenarios: Object.keys(SCENARIOS).join(','),
    split: 'test',
    episodes: 20,
  },
  async *run({ policies, task: taskId, scenarios, split, episodes }) {
    const seeds = firstSeeds(split as 'test', episodes);
    for (const name of policies.split(',')) {
      const { policy } = findPolicy('llmserve', isPolicyFile(name) ? readFileSync(name) : name);
      for (const scenario of scenarios.split(',')) {
        const options = SCENARIOS[scenario];
        if (options === undefined)
          throw new Error(`expected one of ${Object.keys(SCENARIOS).join(', ')}, got ${scenario}`);
        const task = llmserve.choose({ ...options, task_id: taskId });
        const gains = seeds.map((seed) => {
          const requests = llmserve.drawRequests(task, seed);
          policy.reset({ taskId, seed, resetOptions: options });
          const episode = new ServeEpisode(task, seed, { requests });
          let reward: number | null = null;
          while (!episode.done) {
            const { action: previousAction, window: stepIndex } = episode;
            const step = { observation: episode.observation(), reward, previousAction, stepIndex };
            // A policy of an environment meets only this environment's observations.
            reward = episode.step(policy.act(step) as typeof previousAction);
          }
          return (
            episode.totals.reward - llmserve.anchors.constantReturn(task, seed, requests, task.defaultAction)
          );
        });
        const [low, high] = stratifiedBootstrap([gains], mean);
        yield { policy: name, task: taskId, scenario, gain: mean(gains), low, high };
      }
    }
  },
});
