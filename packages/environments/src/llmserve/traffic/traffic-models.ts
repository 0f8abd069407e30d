import azureCode2023 from './azure-code-2023.json' with { type: 'json' };
import azureConversation2023 from './azure-conversation-2023.json' with { type: 'json' };
import mooncakeConversation from './mooncake-conversation.json' with { type: 'json' };
import type { TrafficModel } from './traffic-model.ts';

/** Traffic fitted to public traces. */
export const TRAFFIC_IDS = ['azure-conversation-2023', 'azure-code-2023', 'mooncake-conversation'] as const;
export type TrafficId = (typeof TRAFFIC_IDS)[number];

const MODELS: Readonly<Record<TrafficId, TrafficModel>> = {
  'azure-conversation-2023': azureConversation2023,
  'azure-code-2023': azureCode2023,
  'mooncake-conversation': mooncakeConversation,
};

/** The model of this id; `undefined` when there is none. */
export function findTraffic(id: string): TrafficModel | undefined {
  return Object.hasOwn(MODELS, id) ? MODELS[id as TrafficId] : undefined;
}
