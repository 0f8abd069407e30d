import { chatPrices, h100Fleet, objectives } from './common.ts';
import type { FleetTask } from './fleet-task.ts';

/** Surges shorter and longer than a cold start, with work beside them that can wait. */
export const flashCrowds: FleetTask = {
  ...h100Fleet,
  id: 'flash_crowds',
  name: 'Flash crowds',
  difficulty: 'medium',
  description:
    'Chat with surges, some over before a new replica is ready and some that last for many minutes, beside batch and best-effort work that can wait or be refused. Headroom costs money all the time; a replica for a short surge comes too late; refusing work that waits makes room at once.',
  windows: 240,
  windowSeconds: 30,
  objectives,
  prices: chatPrices,
  referenceUsd: 0.15,
  streams: [
    {
      name: 'chat',
      class: 'interactive',
      rate: {
        perSecond: 25,
        peakToTrough: 2,
        surges: [
          { everySeconds: 600, factor: [2.5, 5], seconds: [20, 50], rampSeconds: 5 },
          { everySeconds: 1500, factor: [2, 4], seconds: [300, 900], rampSeconds: 60 },
        ],
      },
      lengths: 'azure-conversation-2023',
      systemPrompt: { tokens: 160, applications: 4 },
    },
    {
      name: 'batch',
      class: 'batch',
      rate: {
        perSecond: 6,
        peakToTrough: 1,
        surges: [{ everySeconds: 1200, factor: [3, 6], seconds: [60, 240], rampSeconds: 10 }],
      },
      lengths: {
        prompt: { median: 1200, sigma: 0.7, min: 64, max: 6000 },
        output: { median: 300, sigma: 0.6, min: 16, max: 1200 },
      },
    },
    {
      name: 'crawl',
      class: 'best_effort',
      rate: { perSecond: 8, peakToTrough: 1 },
      lengths: {
        prompt: { median: 2000, sigma: 0.6, min: 128, max: 7000 },
        output: { median: 150, sigma: 0.6, min: 8, max: 800 },
      },
    },
  ],
};
