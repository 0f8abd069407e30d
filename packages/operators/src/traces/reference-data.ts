import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { TuningError } from '../tune/slo.ts';

/** Measurements and traces of others, which the repository does not hold. docs/reference-data.md has their columns. */
export interface ReferenceFile {
  /** Path in the folder that `--data` names. */
  readonly path: string;
  /** Name under which the source publishes the same file. */
  readonly publishedAs?: string;
  /** Source and licence. */
  readonly source: string;
}

const KERNELS = 'kernel-profiles/rtx4090-llama-3.1-8b-bf16-tp1';
const RUN = 'vllm-runs/rtx4090-llama-3.1-8b';
const RECORDED = 'vllm-runs/vllm-0.15-h100-recorded-loads';
const LLM_SERVING_SIM = 'LLMServingSim (github.com/casys-kaist/LLMServingSim, MIT)';
const AZURE = '(github.com/Azure/AzurePublicDataset, CC-BY-4.0)';

const file = (path: string, source: string, publishedAs?: string): ReferenceFile => ({
  path,
  source,
  ...(publishedAs !== undefined && { publishedAs }),
});

export const REFERENCE_DATA = {
  staticBatches: file(
    'measured/static-batch-latency.csv',
    'LLM-Inference-Bench (github.com/argonne-lcf/LLM-Inference-Bench, BSD-3-Clause)',
  ),
  servedLoads: file(
    'measured/vllm-0.15-served-load.json',
    'inference-sim (github.com/inference-sim/inference-sim)',
  ),
  moreServedLoads: file(
    'measured/vllm-served-loads-38.json',
    'inference-sim (github.com/inference-sim/inference-sim)',
  ),
  recordedLoadServers: file(
    `${RECORDED}/meta.json`,
    'inference-sim (github.com/inference-sim/inference-sim)',
  ),
  denseKernels: file(`${KERNELS}/dense.csv`, LLM_SERVING_SIM),
  sequenceKernels: file(`${KERNELS}/per_sequence.csv`, LLM_SERVING_SIM),
  attentionKernels: file(`${KERNELS}/attention.csv`, LLM_SERVING_SIM),
  runRequests: file(`${RUN}/requests.jsonl`, LLM_SERVING_SIM),
  runMeta: file(`${RUN}/meta.json`, LLM_SERVING_SIM),
  azureConversation: file(
    'traces/azure-llm-2023-conv.csv',
    `AzureLLMInferenceTrace_conv ${AZURE}`,
    'AzureLLMInferenceTrace_conv.csv',
  ),
  azureCode: file(
    'traces/azure-llm-2023-code.csv',
    `AzureLLMInferenceTrace_code ${AZURE}`,
    'AzureLLMInferenceTrace_code.csv',
  ),
  mooncakeConversation: file(
    'traces/mooncake-conversation.jsonl',
    'conversation_trace (github.com/kvcache-ai/Mooncake, Apache-2.0)',
    'conversation_trace.jsonl',
  ),
  ragPulse: file('traces/ragpulse', 'RAGPulse (github.com/flashserve/RAGPulse, MIT)'),
} as const satisfies Record<string, ReferenceFile>;

export const SERVED_LOADS: readonly ReferenceFile[] = [
  REFERENCE_DATA.servedLoads,
  REFERENCE_DATA.moreServedLoads,
];

/** Loads request by request, but for two of which a third and more of the requests failed. */
export const RECORDED_LOADS: readonly ReferenceFile[] = [
  'codellama-34b-tp2-codegen',
  'codellama-34b-tp2-reasoning',
  'codellama-34b-tp2-roleplay',
  'llama-2-70b-hf-tp4-codegen',
  'llama-2-70b-tp4-general',
  'llama-2-7b-tp1-codegen',
  'llama-2-7b-tp1-general',
  'llama-2-7b-tp1-roleplay',
  'mixtral-8x7b-v0-1-tp2-codegen',
  'mixtral-8x7b-v0-1-tp2-roleplay',
].map((name) => file(`${RECORDED}/${name}.csv.gz`, 'inference-sim (github.com/inference-sim/inference-sim)'));

/**
 * Paths of reference files below `folder`, in their order. A file may also lie in the folder itself.
 * @throws TuningError that names every file that is missing, and its source.
 */
export function findReferenceFiles(folder: string, files: readonly ReferenceFile[]): string[] {
  const found = files.map(({ path, publishedAs }) =>
    [path, basename(path), publishedAs ?? path].map((name) => join(folder, name)).find(existsSync),
  );
  const missing = files.filter((_, i) => found[i] === undefined);
  if (missing.length > 0) {
    throw new TuningError(
      'REFERENCE_DATA_MISSING',
      [
        `REFERENCE_DATA_MISSING: ${folder} lacks`,
        ...missing.map(
          ({ path, publishedAs, source }) =>
            `  ${path}${publishedAs === undefined ? '' : ` (or ${publishedAs})`}, from ${source}`,
        ),
        'The repository does not hold them: docs/reference-data.md says how to get them and which columns they have.',
      ].join('\n'),
    );
  }
  return found as string[];
}
