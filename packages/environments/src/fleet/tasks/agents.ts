import { chatPrices, h100Fleet, objectives } from './common.ts';
import type { FleetTask } from './fleet-task.ts';

/** Sessions of agents whose prompts grow, beside retrieval and batch work. */
export const agents: FleetTask = {
  ...h100Fleet,
  id: 'agents',
  name: 'Agents',
  difficulty: 'hard',
  description:
    'Sessions of agents: turn after turn a longer prompt, most of which the replica of the turn before has cached, with think times between. Beside them answers from retrieved passages and batch work with long prompts. Retrieval comes in surges longer than a cold start. Where a request goes decides what has to be computed again; a replica that stops takes its sessions’ cache with it; long prompts hold up what is being decoded.',
  windows: 240,
  windowSeconds: 30,
  // Sessions are why gateways know prefixes: the weights of llm-d's sample configuration, prefixes 2 and load 1.
  defaultAction: { ...h100Fleet.defaultAction, routing_queue: 0.5, routing_prefix: 1 },
  objectives: { ...objectives, interactive: { ttftMs: 1500, tpotMs: 30 } },
  prices: chatPrices,
  referenceUsd: 0.25,
  streams: [
    {
      name: 'sessions',
      class: 'interactive',
      rate: {
        perSecond: 0.35,
        peakToTrough: 4,
        surges: [{ everySeconds: 2400, factor: [1.5, 2.5], seconds: [240, 600], rampSeconds: 60 }],
      },
      lengths: {
        prompt: { median: 5000, sigma: 0.4, min: 3500, max: 16_000 },
        output: { median: 250, sigma: 0.8, min: 16, max: 2000 },
      },
      systemPrompt: { tokens: 3000, applications: 3 },
      turns: {
        mean: 12,
        added: { median: 900, sigma: 1, min: 16, max: 12_000 },
        thinkSeconds: { median: 6, sigma: 1.2, min: 1, max: 300 },
        maxPrompt: 60_000,
      },
    },
    {
      name: 'retrieval',
      class: 'interactive',
      // Of RAGPulse's ten minutes one in a hundred has 2.5 times the requests of the two hours around it, the busiest 3.5.
      rate: {
        perSecond: 4,
        peakToTrough: 4,
        surges: [{ everySeconds: 2400, factor: [2, 3.5], seconds: [300, 900], rampSeconds: 30 }],
      },
      lengths: {
        prompt: { median: 3200, sigma: 0.3, min: 2600, max: 8000 },
        output: { median: 200, sigma: 0.6, min: 8, max: 1000 },
      },
      systemPrompt: { tokens: 400, applications: 2 },
      retrieval: { documents: 5000, passages: 3, tokens: 640, exponent: 1 },
    },
    {
      name: 'reports',
      class: 'batch',
      rate: {
        perSecond: 0.5,
        peakToTrough: 1,
        surges: [{ everySeconds: 1500, factor: [4, 10], seconds: [60, 180], rampSeconds: 10 }],
      },
      lengths: {
        prompt: { median: 9000, sigma: 0.6, min: 1000, max: 30_000 },
        output: { median: 500, sigma: 0.6, min: 64, max: 2000 },
      },
    },
  ],
};
