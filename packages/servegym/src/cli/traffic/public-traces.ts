import type { WorkloadIdentity } from '@servegym/environments';
import { REFERENCE_DATA, type ReferenceFile } from '@servegym/tuning/fidelity';

/** A public trace that a workload is fitted to. */
export interface PublicTrace extends WorkloadIdentity {
  readonly file: ReferenceFile;
}

export const PUBLIC_TRACES: readonly PublicTrace[] = [
  {
    id: 'azure-conversation-2023',
    title: 'Azure, conversation, November 2023',
    source: 'AzureLLMInferenceTrace_conv (Azure/AzurePublicDataset, CC-BY-4.0)',
    file: REFERENCE_DATA.azureConversation,
  },
  {
    id: 'azure-code-2023',
    title: 'Azure, code completion, November 2023',
    source: 'AzureLLMInferenceTrace_code (Azure/AzurePublicDataset, CC-BY-4.0)',
    file: REFERENCE_DATA.azureCode,
  },
  {
    id: 'mooncake-conversation',
    title: 'Mooncake (Kimi), conversation, 2024',
    source: 'conversation_trace (kvcache-ai/Mooncake, Apache-2.0)',
    file: REFERENCE_DATA.mooncakeConversation,
  },
];
