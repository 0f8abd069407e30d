import { knownCheckpoint } from '@servegym/profiles';
import {
  type EngineProfile,
  kvMemoryGiB,
  kvPoolBlocks,
  kvTokens,
  type WeightPrecision,
  weightVariant,
} from '@servegym/simulator';
import { linesIf } from '../report/format.ts';
import type { ServingCommand } from '../report/result.ts';
import { type Candidate, type SplitRatio, splitParts, startedWith } from '../search/candidate.ts';
import { type RouterChoice, routerName } from '../search/search-space.ts';
import { type LaunchSettings, named, SCHEDULER_FLAGS, writeFlags } from './engine-flags.ts';

/** Engines that are started with one line. */
interface Started {
  readonly replicas: number;
  readonly router: RouterChoice;
}

/** The command lines for vLLM and SGLang. `replicas` engines are started with the same line, behind a balancer. */
export function servingCommands(
  profile: EngineProfile,
  candidate: Candidate,
  replicas: number,
  { router = 'least_loaded' }: Partial<Started> = {},
): ServingCommand[] {
  const profileStarted = startedWith(profile, candidate);
  const started = { replicas, router };
  return [vllmCommand(profileStarted, candidate, started), sglangCommand(profileStarted, candidate, started)];
}

/** Settings that either engine has; what is the default of the engine is absent. */
function settingsOf(profile: EngineProfile, candidate: Candidate): LaunchSettings {
  const { gpu, parallel = {}, engine, frontEnd, model } = profile;
  const { data = 1, pipeline = 1, expert = 1 } = parallel;
  const size = (count: number) => (count === 1 ? undefined : count);
  return {
    tensorParallel: size(gpu.count / data / pipeline),
    dataParallel: size(data),
    pipelineParallel: size(pipeline),
    expertParallel: expert > 1,
    ...candidate,
    ...named(engine, SCHEDULER_FLAGS),
    maxNumActiveSeqs: candidate.maxNumActiveSeqs || undefined,
    kvOffloadingGiB: candidate.kvOffloadingGiB || undefined,
    fp8KvCache: model.kvCache === 'FP8',
    speculationDepth: candidate.speculationDepth || undefined,
    apiServerCount: size(frontEnd?.processes ?? 1),
    longPrefillTokenThreshold: engine.longPrefillTokenThreshold || undefined,
    watermark: engine.watermark || undefined,
    wholePromptFits: engine.wholePromptFits === false ? false : undefined,
    chunkedPrefill: engine.chunkedPrefill === false ? false : undefined,
    asyncScheduling: engine.asyncScheduling === false ? false : undefined,
  };
}

function vllmCommand(profile: EngineProfile, candidate: Candidate, started: Started): ServingCommand {
  const { speculationDepth, split, priority } = candidate;
  const { name, weights, notes, draft } = checkpoint(profile, candidate);
  const settings: LaunchSettings = {
    ...settingsOf(profile, candidate),
    ...{ weights, draft, priority: priority || undefined, role: split ? 'both' : undefined },
    memoryShare: vllmMemoryShare(profile, candidate),
    maxModelLen: longestOf(profile, candidate),
  };
  return {
    engine: 'vLLM',
    line: [`vllm serve ${name}`, ...writeFlags('vLLM', settings)].join(' '),
    notExpressed: [
      ...notes,
      ...(split
        ? [
            `${rolesText(split)}: a proxy sends prompts to those that prefill, and the rest to the others; on one host, each needs a VLLM_NIXL_SIDE_CHANNEL_PORT of its own`,
          ]
        : []),
      ...linesIf(priority, PRIORITY_NOTE),
      ...gatewayNotes(candidate),
      ...linesIf(
        speculationDepth > 0 && profile.engine.speculationDepthPerBatchSize,
        'full CUDA graphs: with draft tokens by batch size, vLLM keeps them only with VLLM_USE_V2_MODEL_RUNNER=1 in its environment',
      ),
      ...replicaNote(started),
    ],
  };
}

function sglangCommand(profile: EngineProfile, candidate: Candidate, started: Started): ServingCommand {
  const { speculationDepth, split, priority } = candidate;
  const { name, weights, notes, draft } = checkpoint(profile, candidate);
  const own = settingsOf(profile, candidate);
  // Flags of vLLM's scheduler and front end where the profile does not have its defaults.
  const unknown = writeFlags('vLLM', named(own, ['apiServerCount', ...SCHEDULER_FLAGS]));
  const settings: LaunchSettings = {
    ...own,
    ...{ weights, draft: speculationDepth > 0 ? draft : undefined },
    attentionParallel: own.dataParallel !== undefined,
    maxNumSeqs: candidate.maxNumActiveSeqs || candidate.maxNumSeqs,
    memoryShare: staticMemoryShare(profile, candidate),
    role: split ? 'prefill' : undefined,
  };
  return {
    engine: 'SGLang',
    line: [`python -m sglang.launch_server --model-path ${name}`, ...writeFlags('SGLang', settings)].join(
      ' ',
    ),
    notExpressed: [
      ...(split
        ? [
            `${rolesText(split)}: the same line with --disaggregation-mode decode for the others, and a router before all`,
          ]
        : []),
      'the token budget of an iteration: SGLang bounds the prompt tokens of a chunk, not prompts and decodes together',
      ...linesIf(
        speculationDepth > 0,
        'chunks of prompts beside decodes: with a draft, SGLang computes them in iterations of their own',
      ),
      ...linesIf(
        speculationDepth > 0 && profile.engine.speculationDepthPerBatchSize,
        'draft tokens by batch size: SGLang drafts the same for all batches',
      ),
      'preemption: SGLang retracts by its own rule, so a full KV pool behaves differently',
      ...linesIf(unknown.length > 0, `what vLLM has as ${unknown.join(' ')}: SGLang has its own scheduler`),
      ...linesIf(priority, PRIORITY_NOTE),
      ...notes,
      ...gatewayNotes(candidate),
      ...replicaNote(started),
    ],
  };
}

/** Checkpoint to name on the line, weights that a flag asks for, and what has to be found by hand. */
function checkpoint({ model }: EngineProfile, { weights, speculationDepth }: Candidate) {
  const known = knownCheckpoint(model.name)?.model;
  const notes: string[] = [];
  let quantized: WeightPrecision | undefined;
  let name = known?.checkpoints[weights];
  if (known === undefined) {
    notes.push(
      `the checkpoint: ${model.name} is the name in the profile, put the id or folder of yours there`,
    );
    name = model.name;
  } else if (name !== undefined) {
    if (SCHEMES[weights] !== undefined)
      notes.push(
        `the ${weights} weights: a public checkpoint quantized to ${SCHEMES[weights]}, look at its card`,
      );
  } else if (weights === 'FP8' && known.checkpoints.FP16 !== undefined) {
    name = known.checkpoints.FP16;
    quantized = 'FP8';
  } else {
    const base = known.checkpoints[known.checkpoint]!;
    name = `./${base.split('/').at(-1)!}-${weights}`;
    notes.push(
      `the ${weights} weights: no public checkpoint of them is known here; quantize ${base} to ${SCHEMES[weights] ?? weights} (for instance with llm-compressor) into that folder`,
    );
  }
  if (speculationDepth > 0 && known?.draft === undefined) {
    notes.push(`the draft: name an EAGLE head trained for ${model.name}, and put it into that folder`);
  }
  const draft = known?.draft ?? `./${model.name}-EAGLE`;
  return {
    name,
    weights: quantized,
    notes,
    draft: { model: draft, method: /eagle3/i.test(draft) ? 'eagle3' : 'eagle' },
  };
}

/** Formats of quantized checkpoints that no option of an engine makes. */
const SCHEMES: Partial<Record<WeightPrecision, string>> = { INT8: 'W8A8 INT8', INT4: 'W4A16 INT4' };

const PRIORITY_NOTE =
  'the classes: each request says its own as `priority`, 0 for the most urgent; without it all are alike';

/** Engines that prefill, of those that are started alike. */
function rolesText(split: SplitRatio): string {
  const { prefill, decode } = splitParts(split);
  return `the roles: ${prefill} of every ${prefill + decode} engines ${prefill === 1 ? 'prefills' : 'prefill'}`;
}

function gatewayNotes({ maxLocalPrefillLength: local, admissionQueueSeconds: seconds }: Candidate) {
  return [
    ...linesIf(
      local > 0,
      `the decider of the proxy: prompts of at most ${local} tokens are prefilled where they are decoded`,
    ),
    ...linesIf(
      seconds > 0,
      `admission of the gateway: class 2 and later are refused above ${seconds} s of queue, class 1 above ${2 * seconds} s`,
    ),
  ];
}

function replicaNote({ replicas, router }: Started) {
  const balancer =
    router === 'least_loaded'
      ? 'a balancer that picks the least loaded'
      : router === 'prefix_aware'
        ? 'a router that sends prompts where their prefix is cached, such as the production stack (--routing-logic prefixaware) or llm-d'
        : `a router that spreads requests as ${routerName(router)} of \`simulate --router\` does`;
  return linesIf(
    replicas > 1,
    `the ${replicas} replicas: start the line ${replicas} times, behind ${balancer}`,
  );
}

/** Longest request with which vLLM starts, tokens, where that is less than the context of the model. */
function longestOf(profile: EngineProfile, candidate: Candidate): number | undefined {
  const { weights, speculationDepth, kvBudgetFraction, maxNumBatchedTokens } = candidate;
  // Without chunked prefill vLLM does not start with requests beyond the budget.
  if (profile.engine.chunkedPrefill === false) return maxNumBatchedTokens;
  const blocks = kvPoolBlocks(profile, weights, speculationDepth > 0, kvBudgetFraction);
  const pool = kvTokens(profile, Math.floor(blocks / (profile.parallel?.data ?? 1)));
  const context = knownCheckpoint(profile.model.name)?.model.contextTokens ?? 0;
  return context > pool ? pool : undefined;
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
