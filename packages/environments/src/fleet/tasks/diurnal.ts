import { chatPrices, h100Fleet, objectives } from './common.ts';
import type { FleetTask } from './fleet-task.ts';

/** Chat with a daily curve: follow the demand, a cold start ahead. */
export const diurnal: FleetTask = {
  ...h100Fleet,
  id: 'diurnal',
  name: 'Diurnal chat',
  difficulty: 'easy',
  description:
    'Chat whose rate follows the hour of the day, with batch work beside it. Replicas take one to two minutes to start: enough of them must be ready before the demand is there, and none for longer than it pays.',
  windows: 240,
  windowSeconds: 30,
  objectives,
  prices: chatPrices,
  referenceUsd: 0.2,
  streams: [
    {
      name: 'chat',
      class: 'interactive',
      rate: { perSecond: 60, peakToTrough: 5 },
      lengths: 'azure-conversation-2023',
      systemPrompt: { tokens: 160, applications: 4 },
    },
    {
      name: 'batch',
      class: 'batch',
      rate: { perSecond: 8, peakToTrough: 1 },
      lengths: {
        prompt: { median: 1200, sigma: 0.7, min: 64, max: 6000 },
        output: { median: 300, sigma: 0.6, min: 16, max: 1200 },
      },
    },
  ],
};
