import { type EngineProfile, kvMemoryGiB, weightVariant } from '@servegym/simulator';
import type { Candidate } from './candidate.ts';

/** Command that starts a server with a candidate's settings, and notes on what the line cannot say. */
export interface ServingCommand {
  readonly engine: 'vLLM' | 'SGLang';
  readonly line: string;
  readonly notExpressed: readonly string[];
}

/** Either engine of a pair may prefill. */
const NIXL = '{"kv_connector":"NixlConnector","kv_role":"kv_both"}';

/** The public checkpoints of the models that the profiles are of. */
const CHECKPOINTS: Readonly<Record<string, string>> = {
  'llama-2-7b': 'meta-llama/Llama-2-7b-chat-hf',
  'llama-3-8b': 'meta-llama/Meta-Llama-3-8B-Instruct',
  'llama-3-70b': 'meta-llama/Meta-Llama-3-70B-Instruct',
  'llama-4-scout': 'meta-llama/Llama-4-Scout-17B-16E-Instruct',
  'mistral-7b': 'mistralai/Mistral-7B-Instruct-v0.3',
  'mistral-nemo-12b': 'mistralai/Mistral-Nemo-Instruct-2407',
  'qwen2.5-7b': 'Qwen/Qwen2.5-7B-Instruct',
  'yi-34b': '01-ai/Yi-34B-Chat',
};

/** Public EAGLE heads of the models above. */
const DRAFTS: Readonly<Record<string, string>> = {
  'llama-2-7b': 'yuhuili/EAGLE-llama2-chat-7B',
  'llama-3-8b': 'yuhuili/EAGLE-LLaMA3-Instruct-8B',
  'llama-3-70b': 'yuhuili/EAGLE-LLaMA3-Instruct-70B',
};

/** The command lines for vLLM and SGLang. `replicas` engines are started with the same line, behind a balancer. */
export function servingCommands(
  profile: EngineProfile,
  candidate: Candidate,
  replicas: number,
): ServingCommand[] {
  return [vllmCommand(profile, candidate, replicas), sglangCommand(profile, candidate, replicas)];
}

function vllmCommand(profile: EngineProfile, candidate: Candidate, replicas: number): ServingCommand {
  const { weights, speculationDepth } = candidate;
  const { model, notes } = checkpoint(profile, candidate);
  const speculative = JSON.stringify({
    method: 'eagle',
    model: draftName(profile),
    num_speculative_tokens: speculationDepth,
  });
  return {
    engine: 'vLLM',
    line: [
      `vllm serve ${model}`,
      ...tensorParallel('--tensor-parallel-size', profile),
      `--max-num-seqs ${candidate.maxNumSeqs}`,
      `--max-num-batched-tokens ${candidate.maxNumBatchedTokens}`,
      `--gpu-memory-utilization ${vllmMemoryShare(profile, candidate)}`,
      candidate.prefixCaching ? '--enable-prefix-caching' : '--no-enable-prefix-caching',
      ...(weights === 'FP8' ? ['--quantization fp8'] : []),
      ...(speculationDepth > 0 ? [`--speculative-config '${speculative}'`] : []),
      ...(candidate.split ? [`--kv-transfer-config '${NIXL}'`] : []),
      ...(candidate.priority ? ['--scheduling-policy priority'] : []),
    ].join(' '),
    notExpressed: [
      ...notes,
      ...(candidate.split
        ? [
            'which engine of a pair prefills: a proxy sends prompts to one, and the rest to the other; on one host, each needs a VLLM_NIXL_SIDE_CHANNEL_PORT of its own',
          ]
        : []),
      ...(candidate.priority ? [PRIORITY_NOTE] : []),
      ...replicaNote(replicas),
    ],
  };
}

function sglangCommand(profile: EngineProfile, candidate: Candidate, replicas: number): ServingCommand {
  const { weights, speculationDepth } = candidate;
  const { model, notes } = checkpoint(profile, candidate);
  return {
    engine: 'SGLang',
    line: [
      `python -m sglang.launch_server --model-path ${model}`,
      ...tensorParallel('--tp-size', profile),
      `--max-running-requests ${candidate.maxNumSeqs}`,
      `--chunked-prefill-size ${candidate.maxNumBatchedTokens}`,
      // SGLang turns it off when there is a draft.
      ...(speculationDepth > 0 ? [] : ['--enable-mixed-chunk']),
      '--schedule-policy fcfs',
      ...(candidate.priority ? ['--enable-priority-scheduling', '--schedule-low-priority-values-first'] : []),
      `--mem-fraction-static ${staticMemoryShare(profile, candidate)}`,
      ...(candidate.prefixCaching ? [] : ['--disable-radix-cache']),
      ...(weights === 'FP8' ? ['--quantization fp8'] : []),
      ...(speculationDepth > 0
        ? [
            '--speculative-algorithm EAGLE',
            `--speculative-draft-model-path ${draftName(profile)}`,
            `--speculative-num-steps ${speculationDepth}`,
            '--speculative-eagle-topk 1',
            `--speculative-num-draft-tokens ${speculationDepth + 1}`,
          ]
        : []),
      ...(candidate.split ? ['--disaggregation-mode prefill'] : []),
    ].join(' '),
    notExpressed: [
      ...(candidate.split
        ? [
            'the other engine of a pair: the same line with --disaggregation-mode decode, and a router before both',
          ]
        : []),
      'the token budget of an iteration: SGLang bounds the prompt tokens of a chunk, not prompts and decodes together',
      ...(speculationDepth > 0
        ? ['chunks of prompts beside decodes: with a draft, SGLang computes them in iterations of their own']
        : []),
      'preemption: SGLang retracts by its own rule, so a full KV pool behaves differently',
      ...(candidate.priority ? [PRIORITY_NOTE] : []),
      ...notes,
      ...replicaNote(replicas),
    ],
  };
}

/** The model to name on the line, and what has to be found by hand. */
function checkpoint(profile: EngineProfile, { weights, speculationDepth }: Candidate) {
  const base = CHECKPOINTS[profile.model.name.toLowerCase()];
  const notes: string[] = [];
  let model = base ?? `<checkpoint of ${profile.model.name}>`;
  if (base === undefined) notes.push(`which checkpoint of ${profile.model.name} is yours`);
  if (weights === 'INT8' || weights === 'INT4') {
    const scheme = weights === 'INT8' ? 'W8A8 INT8' : 'W4A16 INT4';
    model = `<${scheme} checkpoint of ${profile.model.name}>`;
    notes.push(
      `the ${weights} weights: they come with a checkpoint quantized to ${scheme}, no option makes them`,
    );
  }
  if (speculationDepth > 0 && draft(profile) === undefined) {
    notes.push(`the draft: name an EAGLE head trained for ${profile.model.name}`);
  }
  return { model, notes };
}

function draft({ model }: EngineProfile): string | undefined {
  return DRAFTS[model.name.toLowerCase()];
}

function draftName(profile: EngineProfile): string {
  return draft(profile) ?? `<EAGLE draft of ${profile.model.name}>`;
}

const PRIORITY_NOTE =
  'the classes: each request says its own as `priority`, 0 for the most urgent; without it all are alike';

function replicaNote(replicas: number): string[] {
  return replicas === 1
    ? []
    : [
        `the ${replicas} replicas: start the line ${replicas} times, behind a balancer that picks the least loaded`,
      ];
}

function tensorParallel(option: string, { gpu }: EngineProfile): string[] {
  return gpu.count === 1 ? [] : [`${option} ${gpu.count}`];
}

/** Share of the GPU that vLLM fills with weights, draft, activations and KV together. */
function vllmMemoryShare(profile: EngineProfile, { weights, speculationDepth, kvBudgetFraction }: Candidate) {
  const unused = (1 - kvBudgetFraction) * kvMemoryGiB(profile, weights, speculationDepth > 0);
  return roundDown(profile.memory.utilization - unused / profile.gpu.memoryGiB);
}

/** Share of the GPU that SGLang gives to weights and KV, without activations. */
function staticMemoryShare(
  profile: EngineProfile,
  { weights, speculationDepth, kvBudgetFraction }: Candidate,
) {
  const draft = speculationDepth > 0 ? (profile.speculation?.draftGiB ?? 0) : 0;
  const kv = kvBudgetFraction * kvMemoryGiB(profile, weights, speculationDepth > 0);
  return roundDown((weightVariant(profile, weights).weightGiB + draft + kv) / profile.gpu.memoryGiB);
}

function roundDown(share: number): number {
  return Math.floor(share * 1000 + 1e-6) / 1000;
}
