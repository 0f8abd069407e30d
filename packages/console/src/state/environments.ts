/** What the page knows of an environment by its name. All else it learns from the server. */
interface KnownEnvironment {
  /** The environment in a sentence. Others bring a description of their own. */
  readonly lead: string;
  /** The policy that plays where the address names none. */
  readonly policy: string;
}

export const ENVIRONMENTS: Readonly<Record<string, KnownEnvironment | undefined>> = {
  llmserve: {
    lead: 'A simulated LLM inference server. Every few seconds a policy, or you, turns its knobs; at the end the episode is scored.',
    policy: 'heuristic',
  },
  inferencegym: {
    lead: 'An LLM inference server played from a table of measurements. Each second a policy, or you, turns its knobs; at the end the episode is scored.',
    policy: 'baseline',
  },
  fleet: {
    lead: 'A simulated fleet of LLM inference servers. Every 30 s a policy, or you, chooses replicas, routing and admission; at the end the episode is scored in dollars.',
    policy: 'hpa',
  },
};
