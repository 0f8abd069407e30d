import { MODELS, type ServedModel } from '@servegym/profiles';
import {
  type EngineProfile,
  kvMemoryGiB,
  type RouterPolicy,
  type WeightPrecision,
  weightVariant,
} from '@servegym/simulator';
import type { PlanPool } from '../plan/plan-result.ts';
import { type Candidate, type SplitRatio, splitParts, startedWith } from './candidate.ts';

/** Command that starts a server with a candidate's settings, and notes on what the line cannot say. */
export interface ServingCommand {
  readonly engine: 'vLLM' | 'SGLang';
  /** Engines that are started with it, where others are started with other lines. */
  readonly pool?: string;
  readonly line: string;
  readonly notExpressed: readonly string[];
}

/** Either engine of a pair may prefill. */
const NIXL = '{"kv_connector":"NixlConnector","kv_role":"kv_both"}';

/** Engines that are started with one line. */
interface Started {
  readonly replicas: number;
  readonly router: RouterPolicy;
  /** Part of a request that they serve, where others serve the other; `null` where engines of both roles have the line. */
  readonly role: 'prefill' | 'decode' | null;
}

/** The command lines for vLLM and SGLang. `replicas` engines are started with the same line, behind a balancer. */
export function servingCommands(
  profile: EngineProfile,
  candidate: Candidate,
  replicas: number,
  { router = 'least_loaded', role = null }: Partial<Started> = {},
): ServingCommand[] {
  const profileStarted = startedWith(profile, candidate);
  const started = { replicas, router, role };
  return [vllmCommand(profileStarted, candidate, started), sglangCommand(profileStarted, candidate, started)];
}

/** The command lines for the pools of a fleet, one after the other. */
export function poolCommands(
  pools: readonly PlanPool[],
  router: RouterPolicy,
  secondWeight: number,
): ServingCommand[] {
  const [{ profile, settings }] = pools;
  const isOneKind = pools.every((pool) => pool.profile === profile);
  if (isOneKind) {
    const engines = pools.reduce((sum, pool) => sum + pool.engines, 0);
    return servingCommands(profile, settings, engines, { router });
  }
  return pools.flatMap((pool, at) => {
    const role = pool.role === 'all' ? null : pool.role;
    const candidate = { ...pool.settings, split: settings.split };
    const notes =
      at === 1 && secondWeight !== 1
        ? [
            `the balancer's weight of each of these engines: ${secondWeight}, with 1 for the others (nginx: least_conn with weights in that ratio)`,
          ]
        : [];
    return servingCommands(pool.profile, candidate, pool.engines, { router, role }).map((command) => ({
      ...command,
      pool: poolText(pool),
      notExpressed: [...command.notExpressed, ...notes],
    }));
  });
}

/** Engines of a pool in words, `2 engines on H100-80GB that prefill`. */
export function poolText({ engines, profile: { gpu }, role }: PlanPool): string {
  const one = gpu.count > 1 ? `${gpu.count} x ${gpu.name}` : gpu.name;
  const does = role === 'all' ? '' : ` that ${role}${engines === 1 ? 's' : ''}`;
  return `${engines} ${engines === 1 ? 'engine' : 'engines'} on ${one}${does}`;
}

function vllmCommand(profile: EngineProfile, candidate: Candidate, started: Started): ServingCommand {
  const { speculationDepth } = candidate;
  const { name, options, notes, draft } = checkpoint(profile, candidate);
  const speculative = JSON.stringify({
    ...draft,
    num_speculative_tokens: speculationDepth,
    num_speculative_tokens_per_batch_size: profile.engine.speculationDepthPerBatchSize,
  });
  return {
    engine: 'vLLM',
    line: [
      `vllm serve ${name}`,
      ...vllmDivision(profile),
      `--max-num-seqs ${candidate.maxNumSeqs}`,
      ...(candidate.maxNumActiveSeqs > 0 ? [`--max-num-active-seqs ${candidate.maxNumActiveSeqs}`] : []),
      `--max-num-batched-tokens ${candidate.maxNumBatchedTokens}`,
      `--gpu-memory-utilization ${vllmMemoryShare(profile, candidate)}`,
      candidate.prefixCaching ? '--enable-prefix-caching' : '--no-enable-prefix-caching',
      ...schedulerFlags(profile),
      ...options,
      ...(profile.model.kvCache === 'FP8' ? ['--kv-cache-dtype fp8'] : []),
      ...(speculationDepth > 0 ? [`--speculative-config '${speculative}'`] : []),
      ...(candidate.split ? [`--kv-transfer-config '${NIXL}'`] : []),
      ...(candidate.priority ? ['--scheduling-policy priority'] : []),
    ].join(' '),
    notExpressed: [
      ...notes,
      ...(candidate.split
        ? [
            `${rolesText(candidate.split, started.role)}: a proxy sends prompts to those that prefill, and the rest to the others; on one host, each needs a VLLM_NIXL_SIDE_CHANNEL_PORT of its own`,
          ]
        : []),
      ...(candidate.priority ? [PRIORITY_NOTE] : []),
      ...(speculationDepth > 0 && profile.engine.speculationDepthPerBatchSize
        ? [
            'full CUDA graphs: with draft tokens by batch size, vLLM keeps them only with VLLM_USE_V2_MODEL_RUNNER=1 in its environment',
          ]
        : []),
      ...replicaNote(started),
    ],
  };
}

/** Flags of vLLM's scheduler and front end where the profile does not have its defaults. */
function schedulerFlags({ engine, frontEnd }: EngineProfile): string[] {
  return [
    ...(frontEnd !== undefined && frontEnd.processes > 1 ? [`--api-server-count ${frontEnd.processes}`] : []),
    ...(engine.longPrefillTokenThreshold
      ? [`--long-prefill-token-threshold ${engine.longPrefillTokenThreshold}`]
      : []),
    ...(engine.longPrefillTokenThresholdAdaptive ? ['--long-prefill-token-threshold-adaptive'] : []),
    ...(engine.watermark ? [`--watermark ${engine.watermark}`] : []),
    ...(engine.wholePromptFits === false ? ['--no-scheduler-reserve-full-isl'] : []),
    ...(engine.asyncScheduling === false ? ['--no-async-scheduling'] : []),
  ];
}

function sglangCommand(profile: EngineProfile, candidate: Candidate, started: Started): ServingCommand {
  const { speculationDepth } = candidate;
  const { name, options, notes, draft } = checkpoint(profile, candidate);
  return {
    engine: 'SGLang',
    line: [
      `python -m sglang.launch_server --model-path ${name}`,
      ...sglangDivision(profile),
      `--max-running-requests ${candidate.maxNumActiveSeqs || candidate.maxNumSeqs}`,
      `--chunked-prefill-size ${candidate.maxNumBatchedTokens}`,
      // SGLang turns it off when there is a draft.
      ...(speculationDepth > 0 ? [] : ['--enable-mixed-chunk']),
      '--schedule-policy fcfs',
      ...(candidate.priority ? ['--enable-priority-scheduling', '--schedule-low-priority-values-first'] : []),
      `--mem-fraction-static ${staticMemoryShare(profile, candidate)}`,
      ...(candidate.prefixCaching ? [] : ['--disable-radix-cache']),
      ...options,
      ...(profile.model.kvCache === 'FP8' ? ['--kv-cache-dtype fp8_e4m3'] : []),
      ...(speculationDepth > 0
        ? [
            `--speculative-algorithm ${draft.method.toUpperCase()}`,
            `--speculative-draft-model-path ${draft.model}`,
            `--speculative-num-steps ${speculationDepth}`,
            '--speculative-eagle-topk 1',
            `--speculative-num-draft-tokens ${speculationDepth + 1}`,
          ]
        : []),
      ...(candidate.split ? [`--disaggregation-mode ${started.role ?? 'prefill'}`] : []),
    ].join(' '),
    notExpressed: [
      ...(candidate.split
        ? [
            started.role === null
              ? `${rolesText(candidate.split, null)}: the same line with --disaggregation-mode decode for the others, and a router before all`
              : 'a router before the engines of both roles',
          ]
        : []),
      'the token budget of an iteration: SGLang bounds the prompt tokens of a chunk, not prompts and decodes together',
      ...(speculationDepth > 0
        ? ['chunks of prompts beside decodes: with a draft, SGLang computes them in iterations of their own']
        : []),
      ...(speculationDepth > 0 && profile.engine.speculationDepthPerBatchSize
        ? ['draft tokens by batch size: SGLang drafts the same for all batches']
        : []),
      'preemption: SGLang retracts by its own rule, so a full KV pool behaves differently',
      ...(schedulerFlags(profile).length > 0
        ? [`what vLLM has as ${schedulerFlags(profile).join(' ')}: SGLang has its own scheduler`]
        : []),
      ...(candidate.priority ? [PRIORITY_NOTE] : []),
      ...notes,
      ...replicaNote(started),
    ],
  };
}

/** Checkpoint to name on the line, options that it needs, and what has to be found by hand. */
function checkpoint({ model }: EngineProfile, { weights, speculationDepth }: Candidate) {
  const known = knownModel(model.name);
  const notes: string[] = [];
  const options: string[] = [];
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
    options.push('--quantization fp8');
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
    options,
    notes,
    draft: { model: draft, method: /eagle3/i.test(draft) ? 'eagle3' : 'eagle' },
  };
}

/** Formats of quantized checkpoints that no option of an engine makes. */
const SCHEMES: Partial<Record<WeightPrecision, string>> = { INT8: 'W8A8 INT8', INT4: 'W4A16 INT4' };

function knownModel(name: string): ServedModel | undefined {
  return MODELS.find((model) => model.name.toLowerCase() === name.toLowerCase());
}

const PRIORITY_NOTE =
  'the classes: each request says its own as `priority`, 0 for the most urgent; without it all are alike';

/** Engines that prefill, of those that are started alike. */
function rolesText(split: SplitRatio, role: Started['role']): string {
  if (role !== null) return `that these engines ${role}`;
  const { prefill, decode } = splitParts(split);
  return `the roles: ${prefill} of every ${prefill + decode} engines ${prefill === 1 ? 'prefills' : 'prefill'}`;
}

function replicaNote({ replicas, router }: Started): string[] {
  const balancer =
    router === 'prefix_aware'
      ? 'a router that sends prompts where their prefix is cached, such as the production stack (--routing-logic prefixaware) or llm-d'
      : 'a balancer that picks the least loaded';
  return replicas === 1
    ? []
    : [`the ${replicas} replicas: start the line ${replicas} times, behind ${balancer}`];
}

function vllmDivision({ gpu, parallel = {} }: EngineProfile): string[] {
  const { data = 1, pipeline = 1, expert = 1 } = parallel;
  return [
    ...sized('--tensor-parallel-size', gpu.count / data / pipeline),
    ...sized('--data-parallel-size', data),
    ...sized('--pipeline-parallel-size', pipeline),
    ...(expert > 1 ? ['--enable-expert-parallel'] : []),
  ];
}

/** SGLang counts the replicas of the attention among the GPUs of the tensor-parallel group. */
function sglangDivision({ gpu, parallel = {} }: EngineProfile): string[] {
  const { data = 1, pipeline = 1, expert = 1 } = parallel;
  return [
    ...sized('--tp-size', gpu.count / pipeline),
    ...(data > 1 ? [`--dp-size ${data}`, '--enable-dp-attention'] : []),
    ...sized('--pp-size', pipeline),
    ...sized('--ep-size', expert),
  ];
}

function sized(option: string, size: number): string[] {
  return size === 1 ? [] : [`${option} ${size}`];
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
