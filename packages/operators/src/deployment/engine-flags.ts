import {
  type BatchDepth,
  type EngineProfile,
  isBatchDepths,
  MOST_API_SERVERS,
  type WeightPrecision,
} from '@servegym/simulator';
import flagLists from './flag-lists.json' with { type: 'json' };

/** Settings of an engine as its flags give them. Those that are not named are absent. */
export interface LaunchSettings {
  weights?: WeightPrecision;
  tensorParallel?: number;
  expertParallel?: boolean;
  dataParallel?: number;
  /** Whether SGLang divides its GPUs among data-parallel copies of the attention only. */
  attentionParallel?: boolean;
  pipelineParallel?: number;
  maxNumSeqs?: number;
  /** Requests that run at once, at most `maxNumSeqs`, which it is by default. */
  maxNumActiveSeqs?: number;
  maxNumBatchedTokens?: number;
  /** Share of the GPU's memory that the engine takes. */
  memoryShare?: number;
  /** KV blocks, instead of what the memory holds. */
  kvBlocks?: number;
  /** Memory of the host that keeps copies of KV, for all GPUs of an engine together, GiB. */
  kvOffloadingGiB?: number;
  prefixCaching?: boolean;
  /** Whether urgent classes go first; else requests are served in order of arrival. */
  priority?: boolean;
  draft?: { readonly method?: string; readonly model?: string };
  /** Draft tokens a decode step. */
  speculationDepth?: number;
  speculationDepthPerBatchSize?: readonly BatchDepth[];
  /** Candidates for each place of a tree of drafts, and tokens of it that a step verifies. */
  draftCandidates?: number;
  verifyTokens?: number;
  /** Longest request that the engine takes, tokens. */
  maxModelLen?: number;
  fp8KvCache?: boolean;
  /** Processes of the front end. */
  apiServerCount?: number;
  asyncScheduling?: boolean;
  /** Most tokens of a prompt that an iteration computes beside other requests. */
  longPrefillTokenThreshold?: number;
  /** Whether that is at least an equal share of the token budget. */
  longPrefillTokenThresholdAdaptive?: boolean;
  watermark?: number;
  wholePromptFits?: boolean;
  /** Whether a prompt may be computed in parts. */
  chunkedPrefill?: boolean;
  /** Whether decodes wait while others prefill, as they do in SGLang without mixed chunks. */
  prefillFirst?: boolean;
  /** Iterations of decodes between two looks at what has arrived. */
  schedulerRecvInterval?: number;
  /** Whether requests may name LoRA adapters. */
  lora?: boolean;
  maxLoras?: number;
  maxLoraRank?: number;
  maxCpuLoras?: number;
  /** Names of adapters that are there from the start, and of the base model. */
  loraModules?: readonly string[];
  servedModelNames?: readonly string[];
  /** Part of a request that the engine serves, where others serve the other; `both` where a proxy decides. */
  role?: 'prefill' | 'decode' | 'both';
}

/** Settings of the scheduler, which are part of a profile's engine. */
export const SCHEDULER_FLAGS = [
  'longPrefillTokenThreshold',
  'longPrefillTokenThresholdAdaptive',
  'watermark',
  'wholePromptFits',
  'chunkedPrefill',
  'asyncScheduling',
  'speculationDepthPerBatchSize',
  'schedulerRecvInterval',
  'maxLoras',
  'maxLoraRank',
] as const satisfies readonly (keyof LaunchSettings & keyof EngineProfile['engine'])[];

/** Those of some settings that are there. */
export function named<From extends object, Name extends keyof From>(settings: From, names: readonly Name[]) {
  const found = names.flatMap((name) => (settings[name] === undefined ? [] : [[name, settings[name]]]));
  return Object.fromEntries(found) as Partial<Pick<From, Name>>;
}

/** What is wrong with a value: what was expected, `not simulated`, or the parts of it that are left out. */
type Problem = string | { readonly left: readonly string[] } | undefined;

/** A flag of an engine, read and written. */
interface EngineFlag {
  /** The first is written. */
  readonly names: readonly string[];
  /** Whether nothing follows it. */
  readonly isAlone?: true;
  /** Whether all words up to the next flag follow it, one a line of the value. */
  readonly takesMany?: true;
  /** Takes the value over. Absent where the flag changes nothing that is simulated. */
  readonly read?: (settings: LaunchSettings, value: string) => Problem;
  /** Reason for which its value is not simulated. */
  readonly because?: string;
  /** Value to write, `true` where nothing follows; `undefined` where the settings do not have it. */
  readonly write?: (settings: LaunchSettings) => string | true | undefined;
}

type KeyOf<Value> = {
  [K in keyof LaunchSettings]-?: Value extends NonNullable<LaunchSettings[K]> ? K : never;
}[keyof LaunchSettings];

/** A number in a range, ends included; `step` is 0 for one that need not be whole. */
function number(key: KeyOf<number>, [from, to, step = 1]: readonly number[], ...names: string[]): EngineFlag {
  return {
    names,
    read(settings, text) {
      // vLLM takes 2k and 2K for token counts.
      const factor = /[\d.]+k$/.test(text) ? 1000 : /[\d.]+K$/.test(text) ? 1024 : 1;
      const value = Number(text.replace(/[kK]$/, '')) * factor;
      if (text === '' || !(value >= from && value <= to) || (step === 1 && !Number.isInteger(value)))
        return `a ${step === 1 ? 'whole ' : ''}number from ${from} to ${to}`;
      settings[key] = value;
      return undefined;
    },
    write: ({ [key]: value }) => (value === undefined ? undefined : String(value)),
  };
}

/** A flag that turns a setting on or off. */
function turn(key: KeyOf<boolean>, on: boolean, ...names: string[]): EngineFlag {
  return {
    names,
    isAlone: true,
    read(settings) {
      settings[key] = on;
      return undefined;
    },
    write: ({ [key]: value }) => (value === on ? true : undefined),
  };
}

const NOT_SIMULATED = () => 'not simulated';
/** Flags that change what is not simulated. */
const notSimulated = (...names: string[]): EngineFlag => ({ names, read: NOT_SIMULATED });
const notSimulatedAlone = (...names: string[]): EngineFlag => ({ names, isAlone: true, read: NOT_SIMULATED });
/** Those that change the schedule, with the reason why the engine has no such. */
const withReasons = (engine: keyof typeof flagLists.notSimulated): EngineFlag[] =>
  flagLists.notSimulated[engine].flatMap(({ because, flags = [], switches = [] }) => [
    { ...notSimulated(...flags), because },
    { ...notSimulatedAlone(...switches), because },
  ]);

/** Names of a quantization; the first of each precision is written. */
const QUANTIZATIONS = flagLists.quantizations as Readonly<Record<string, WeightPrecision>>;

/** A word of a list for each value of a setting; the first of a value is written. Others are not simulated. */
function word<Key extends keyof LaunchSettings>(
  key: Key,
  values: Readonly<Record<string, LaunchSettings[Key]>>,
  ...names: string[]
): EngineFlag {
  return {
    names,
    read(settings, text) {
      if (!Object.hasOwn(values, text)) return 'not simulated';
      settings[key] = values[text];
      return undefined;
    },
    write: ({ [key]: value }) =>
      value === undefined ? undefined : Object.keys(values).find((text) => values[text] === value),
  };
}

const kvCache = (fp8: string): EngineFlag => ({
  names: ['--kv-cache-dtype'],
  read(settings, value) {
    if (value === 'auto' || value === 'bfloat16' || value === 'float16') return undefined;
    if (!value.startsWith('fp8')) return 'not simulated';
    settings.fp8KvCache = true;
    return undefined;
  },
  write: ({ fp8KvCache }) => (fp8KvCache ? fp8 : undefined),
});

function readPolicy(settings: LaunchSettings, value: string): Problem {
  if (value !== 'fcfs' && value !== 'priority') return 'not simulated';
  settings.priority ||= value === 'priority';
  return undefined;
}

/** Methods of drafts whose time and acceptance a profile can have. */
const DRAFT_METHOD = /^(eagle3?|mtp|ngram)$/;
/** Keys of --speculative-config that are read, or that name the draft. */
const READ_OF_SPECULATION = /^(method|model|num_speculative_tokens(_per_batch_size)?)$/;

const speculativeConfig: EngineFlag = {
  names: ['--speculative-config'],
  read(settings, value) {
    let config: Record<string, unknown>;
    try {
      config = Object(JSON.parse(value));
    } catch {
      return 'JSON, for instance {"method":"eagle3","model":"...","num_speculative_tokens":3}';
    }
    const { num_speculative_tokens: depth, num_speculative_tokens_per_batch_size: byBatch } = config;
    const { method, model } = config;
    if (!Number.isInteger(depth) || (depth as number) < 1 || (depth as number) > 8) return 'not simulated';
    if (typeof method === 'string' && !DRAFT_METHOD.test(method)) return 'not simulated';
    if (byBatch !== undefined && !isBatchDepths(byBatch))
      return 'num_speculative_tokens_per_batch_size such as [[1,16,3],[17,64,1]]';
    settings.speculationDepth = depth as number;
    if (byBatch !== undefined) settings.speculationDepthPerBatchSize = byBatch;
    if (typeof method === 'string' || typeof model === 'string')
      settings.draft = JSON.parse(JSON.stringify({ model, method }));
    const left = Object.keys(config).filter((key) => !READ_OF_SPECULATION.test(key));
    return left.length === 0 ? undefined : { left };
  },
  write({ draft, speculationDepth, speculationDepthPerBatchSize }) {
    if (speculationDepth === undefined) return undefined;
    return JSON.stringify({
      ...draft,
      num_speculative_tokens: speculationDepth,
      num_speculative_tokens_per_batch_size: speculationDepthPerBatchSize,
    });
  },
};

/** Ranks that vLLM has room for (`MaxLoRARanks`). */
const LORA_RANKS = [1, 8, 16, 32, 64, 128, 256, 320, 512];

const loraFlags: readonly EngineFlag[] = [
  { ...turn('lora', true, '--enable-lora'), write: ({ maxLoras }) => (maxLoras ? true : undefined) },
  number('maxLoras', [1, 1_000_000], '--max-loras'),
  {
    ...number('maxLoraRank', [1, 512], '--max-lora-rank'),
    read(settings, value) {
      settings.maxLoraRank = LORA_RANKS.find((rank) => String(rank) === value);
      return settings.maxLoraRank === undefined ? `one of ${LORA_RANKS.join(', ')}` : undefined;
    },
  },
  number('maxCpuLoras', [1, 1_000_000], '--max-cpu-loras'),
  {
    names: ['--lora-modules'],
    takesMany: true,
    read(settings, value) {
      const found = value.split('\n').map((each) => /^([^={]+)=|^\{.*"name":\s*"([^"]+)"/s.exec(each));
      settings.loraModules = found.flatMap((module) => module?.[1] ?? module?.[2] ?? []);
      return found.includes(null) ? 'adapters such as sql=/adapters/sql' : undefined;
    },
  },
  {
    names: ['--served-model-name'],
    takesMany: true,
    read(settings, value) {
      settings.servedModelNames = value.split('\n');
      return undefined;
    },
  },
];

/** Either engine of a pair may prefill. */
const NIXL = '{"kv_connector":"NixlConnector","kv_role":"kv_both"}';

/** Flags that change no schedule and no time: addresses, names, logs, how the model is loaded, how answers are written. */
const harmless: readonly EngineFlag[] = [
  { names: flagLists.flags },
  { names: flagLists.switches, isAlone: true },
];

const SIZES = [1, 64];
const TOKENS = [1, 1_048_576];
const SEQUENCES = [1, 1_000_000];
const CONTEXT = [1, 100_000_000];
const SHARE = [0.05, 1, 0];

export type EngineName = 'vLLM' | 'SGLang';

/** Flags by engine, in the order in which they are written. `--model` and `--model-path` are read apart. */
const ENGINE_FLAGS: Readonly<Record<EngineName, readonly EngineFlag[]>> = {
  vLLM: [
    ...harmless,
    { names: ['--model'] },
    number('tensorParallel', SIZES, '--tensor-parallel-size', '-tp'),
    number('dataParallel', SIZES, '--data-parallel-size', '-dp'),
    number('pipelineParallel', SIZES, '--pipeline-parallel-size', '-pp'),
    turn('expertParallel', true, '--enable-expert-parallel'),
    number('maxNumSeqs', SEQUENCES, '--max-num-seqs'),
    number('maxNumActiveSeqs', SEQUENCES, '--max-num-active-seqs'),
    number('maxNumBatchedTokens', TOKENS, '--max-num-batched-tokens'),
    number('maxModelLen', CONTEXT, '--max-model-len'),
    number('memoryShare', SHARE, '--gpu-memory-utilization'),
    number('kvBlocks', [1, 2 ** 30], '--num-gpu-blocks-override'),
    number('kvOffloadingGiB', [1e-6, 1e6, 0], '--kv-offloading-size'),
    turn('prefixCaching', true, '--enable-prefix-caching'),
    turn('prefixCaching', false, '--no-enable-prefix-caching'),
    number('apiServerCount', [1, MOST_API_SERVERS], '--api-server-count', '-asc'),
    number('longPrefillTokenThreshold', [0, 10_000_000], '--long-prefill-token-threshold'),
    turn('longPrefillTokenThresholdAdaptive', true, '--long-prefill-token-threshold-adaptive'),
    number('watermark', [0, 0.99, 0], '--watermark'),
    turn('wholePromptFits', true, '--scheduler-reserve-full-isl'),
    turn('wholePromptFits', false, '--no-scheduler-reserve-full-isl'),
    turn('chunkedPrefill', true, '--enable-chunked-prefill'),
    turn('chunkedPrefill', false, '--no-enable-chunked-prefill', '--disable-chunked-prefill'),
    turn('asyncScheduling', true, '--async-scheduling'),
    turn('asyncScheduling', false, '--no-async-scheduling'),
    word('weights', QUANTIZATIONS, '--quantization', '-q'),
    kvCache('fp8'),
    speculativeConfig,
    word('role', { [NIXL]: 'both' }, '--kv-transfer-config'),
    {
      names: ['--scheduling-policy'],
      read: readPolicy,
      write: ({ priority }) => (priority === undefined ? undefined : priority ? 'priority' : 'fcfs'),
    },
    {
      names: ['--max-num-partial-prefills', '--max-long-partial-prefills'],
      read: (_, value) => (value === '1' ? undefined : 'not simulated'),
      because:
        'vLLM V1 starts with 1 alone and 0.32 no longer has it: --long-prefill-token-threshold is its limit',
    },
    ...loraFlags,
    ...withReasons('vLLM'),
    notSimulatedAlone('--enforce-eager'),
    {
      names: ['--dtype'],
      read: (_, value) => (/^(auto|bfloat16|float16|half)$/.test(value) ? undefined : 'not simulated'),
    },
    notSimulated('--block-size', '--compilation-config', '--cpu-offload-gb', '--limit-mm-per-prompt'),
  ],
  SGLang: [
    ...harmless,
    { names: ['--model-path'] },
    {
      // SGLang counts the copies of the attention among the GPUs of the tensor-parallel group.
      ...number('tensorParallel', SIZES, '--tp-size', '--tensor-parallel-size', '--tp'),
      write({ tensorParallel, dataParallel = 1, attentionParallel }) {
        if (tensorParallel === undefined && !attentionParallel) return undefined;
        return String((tensorParallel ?? 1) * (attentionParallel ? dataParallel : 1));
      },
    },
    number('dataParallel', SIZES, '--dp-size'),
    turn('attentionParallel', true, '--enable-dp-attention'),
    number('pipelineParallel', SIZES, '--pp-size'),
    {
      names: ['--ep-size'],
      read(settings, value) {
        if (!/^[1-9]\d?$/.test(value)) return 'a whole number from 1 to 99';
        if (value !== '1') settings.expertParallel = true;
        return undefined;
      },
      write({ tensorParallel = 1, dataParallel = 1, expertParallel }) {
        const gpus = tensorParallel * dataParallel;
        return expertParallel && gpus > 1 ? String(gpus) : undefined;
      },
    },
    { ...turn('expertParallel', true, '--enable-ep-moe'), write: undefined },
    number('maxModelLen', CONTEXT, '--context-length'),
    number('maxNumSeqs', SEQUENCES, '--max-running-requests'),
    number('maxNumBatchedTokens', TOKENS, '--chunked-prefill-size'),
    number('schedulerRecvInterval', TOKENS, '--scheduler-recv-interval'),
    {
      ...turn('prefillFirst', false, '--enable-mixed-chunk'),
      // SGLang turns it off when there is a draft.
      write: ({ maxNumBatchedTokens, speculationDepth }) =>
        maxNumBatchedTokens !== undefined && speculationDepth === undefined ? true : undefined,
    },
    {
      names: ['--schedule-policy'],
      read: readPolicy,
      write: ({ priority }) => (priority === undefined ? undefined : 'fcfs'),
    },
    turn('priority', true, '--enable-priority-scheduling'),
    {
      names: ['--schedule-low-priority-values-first'],
      isAlone: true,
      write: ({ priority }) => priority || undefined,
    },
    number('memoryShare', SHARE, '--mem-fraction-static'),
    turn('prefixCaching', false, '--disable-radix-cache'),
    word('weights', QUANTIZATIONS, '--quantization'),
    kvCache('fp8_e4m3'),
    {
      names: ['--speculative-algorithm'],
      read(settings, value) {
        if (!/^(eagle3?|nextn)$/i.test(value)) return 'not simulated';
        settings.draft = { ...settings.draft, method: value.toLowerCase() };
        return undefined;
      },
      write: ({ draft }) => draft?.method?.toUpperCase(),
    },
    {
      names: ['--speculative-draft-model-path'],
      read(settings, value) {
        settings.draft = { ...settings.draft, model: value };
        return undefined;
      },
      write: ({ draft }) => draft?.model,
    },
    number('speculationDepth', [1, 8], '--speculative-num-steps'),
    {
      ...number('draftCandidates', SIZES, '--speculative-eagle-topk'),
      write: ({ speculationDepth, draftCandidates = 1 }) =>
        speculationDepth === undefined ? undefined : String(draftCandidates),
    },
    {
      ...number('verifyTokens', [2, 1024], '--speculative-num-draft-tokens'),
      write: ({ speculationDepth, verifyTokens }) =>
        speculationDepth === undefined ? undefined : String(verifyTokens ?? speculationDepth + 1),
    },
    word('role', { prefill: 'prefill', decode: 'decode' }, '--disaggregation-mode'),
    ...withReasons('SGLang'),
    notSimulatedAlone('--disable-cuda-graph', '--disable-overlap-schedule'),
  ],
};

/** The flag of this name. */
export function engineFlag(engine: EngineName, name: string): EngineFlag | undefined {
  const flag = ENGINE_FLAGS[engine].find(({ names }) => names.includes(name));
  if (flag !== undefined || !name.includes('.')) return flag;
  // vLLM takes a key of a flag's JSON behind a dot: it is not simulated for the reason of the flag.
  const whole = engineFlag(engine, name.split('.')[0]);
  return whole?.because === undefined ? undefined : whole;
}

/** Flags of an engine for the settings, for a shell. */
export function writeFlags(engine: EngineName, settings: LaunchSettings): string[] {
  return ENGINE_FLAGS[engine].flatMap(({ names: [name], write }) => {
    const value = write?.(settings);
    if (value === undefined) return [];
    return value === true ? [name] : [`${name} ${quoted(value)}`];
  });
}

/** A word as a shell takes it. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
