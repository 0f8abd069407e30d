import azureCode2023 from './azure-code-2023.json' with { type: 'json' };
import azureConversation2023 from './azure-conversation-2023.json' with { type: 'json' };
import type { FittedWorkload } from './fitted-workload.ts';
import mooncakeConversation from './mooncake-conversation.json' with { type: 'json' };

/** Ids of the workloads fitted to public traces. */
export const WORKLOAD_IDS = ['azure-conversation-2023', 'azure-code-2023', 'mooncake-conversation'] as const;
export type WorkloadId = (typeof WORKLOAD_IDS)[number];

const MODELS: Readonly<Record<WorkloadId, FittedWorkload>> = {
  'azure-conversation-2023': azureConversation2023,
  'azure-code-2023': azureCode2023,
  'mooncake-conversation': mooncakeConversation,
};

/** The model of this id; `undefined` when there is none. */
export function findWorkload(id: string): FittedWorkload | undefined {
  return Object.hasOwn(MODELS, id) ? MODELS[id as WorkloadId] : undefined;
}
