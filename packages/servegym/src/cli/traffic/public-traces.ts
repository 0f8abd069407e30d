import type { TrafficIdentity } from '@servegym/environments';

/** A public trace that traffic is fitted to, under the name that its file has where it is published or kept. */
export interface PublicTrace extends TrafficIdentity {
  /** Names that the file goes by. */
  readonly files: readonly string[];
}

export const PUBLIC_TRACES: readonly PublicTrace[] = [
  {
    id: 'azure-conversation-2023',
    title: 'Azure, conversation, November 2023',
    source: 'AzureLLMInferenceTrace_conv (Azure/AzurePublicDataset, CC-BY-4.0)',
    files: ['azure-llm-2023-conv.csv', 'AzureLLMInferenceTrace_conv.csv'],
  },
  {
    id: 'azure-code-2023',
    title: 'Azure, code completion, November 2023',
    source: 'AzureLLMInferenceTrace_code (Azure/AzurePublicDataset, CC-BY-4.0)',
    files: ['azure-llm-2023-code.csv', 'AzureLLMInferenceTrace_code.csv'],
  },
  {
    id: 'mooncake-conversation',
    title: 'Mooncake (Kimi), conversation, 2024',
    source: 'conversation_trace (kvcache-ai/Mooncake, Apache-2.0)',
    files: ['mooncake-conversation.jsonl', 'conversation_trace.jsonl'],
  },
];
