import { isBatchDepths } from '@servegym/simulator';
import type { LaunchSettings } from './launch.ts';

/** A flag of an engine. */
interface LaunchFlag {
  /** False where nothing follows. Default true. */
  readonly value?: false;
  /**
   * Takes the value over. Answers what was expected instead, `not simulated`, or the parts of the value that are left out.
   * Absent where the flag changes nothing that is simulated.
   */
  readonly set?: (
    settings: LaunchSettings,
    value: string,
  ) => string | { readonly left: readonly string[] } | undefined;
}

type NumberSetting = {
  [K in keyof LaunchSettings]-?: number extends NonNullable<LaunchSettings[K]> ? K : never;
}[keyof LaunchSettings];
type SwitchSetting = {
  [K in keyof LaunchSettings]-?: boolean extends NonNullable<LaunchSettings[K]> ? K : never;
}[keyof LaunchSettings];

/** Settings that are shares. */
const SHARES: readonly NumberSetting[] = ['memoryShare', 'watermark'];

const number = (name: NumberSetting, from: number, to: number): LaunchFlag => ({
  set(settings, text) {
    // vLLM takes 2k and 2K for token counts.
    const factor = /[\d.]+k$/.test(text) ? 1000 : /[\d.]+K$/.test(text) ? 1024 : 1;
    const value = Number(text.replace(/[kK]$/, '')) * factor;
    const isWhole = Number.isInteger(value) || SHARES.includes(name);
    if (text === '' || !(value >= from && value <= to && isWhole)) {
      return `a ${SHARES.includes(name) ? '' : 'whole '}number from ${from} to ${to}`;
    }
    settings[name] = value;
    return undefined;
  },
});

const turn = (name: SwitchSetting, on: boolean): LaunchFlag => ({
  value: false,
  set(settings) {
    settings[name] = on;
    return undefined;
  },
});

const nothing: LaunchFlag = {};
const nothingAlone: LaunchFlag = { value: false };
const notSimulated: LaunchFlag = { set: () => 'not simulated' };
const notSimulatedAlone: LaunchFlag = { value: false, set: () => 'not simulated' };

const QUANTIZATIONS: Readonly<Record<string, LaunchSettings['weights']>> = {
  fp8: 'FP8',
  w8a8_fp8: 'FP8',
  modelopt: 'FP8',
  w8a8_int8: 'INT8',
  awq: 'INT4',
  awq_marlin: 'INT4',
  gptq: 'INT4',
  gptq_marlin: 'INT4',
  mxfp4: 'MXFP4',
  modelopt_fp4: 'NVFP4',
};

const quantization: LaunchFlag = {
  set(settings, value) {
    const weights = QUANTIZATIONS[value];
    if (weights === undefined) return 'not simulated';
    settings.weights = weights;
    return undefined;
  },
};

const kvCache: LaunchFlag = {
  set(settings, value) {
    if (value === 'auto' || value === 'bfloat16' || value === 'float16') return undefined;
    if (!value.startsWith('fp8')) return 'not simulated';
    settings.fp8KvCache = true;
    return undefined;
  },
};

const policy: LaunchFlag = {
  set(settings, value) {
    if (value !== 'fcfs' && value !== 'priority') return 'not simulated';
    settings.priority = value === 'priority';
    return undefined;
  },
};

const speculative: LaunchFlag = {
  set(settings, value) {
    let config: unknown;
    try {
      config = JSON.parse(value);
    } catch {
      return 'JSON, for instance {"method":"eagle3","model":"...","num_speculative_tokens":3}';
    }
    const { num_speculative_tokens: depth, method } = (config ?? {}) as Record<string, unknown>;
    if (!Number.isInteger(depth) || (depth as number) < 1 || (depth as number) > 8) return 'not simulated';
    if (typeof method === 'string' && !/^(eagle3?|mtp)$/.test(method)) return 'not simulated';
    settings.speculationDepth = depth as number;
    const { num_speculative_tokens_per_batch_size: byBatch } = config as Record<string, unknown>;
    if (byBatch !== undefined) {
      if (!isBatchDepths(byBatch))
        return 'num_speculative_tokens_per_batch_size such as [[1,16,3],[17,64,1]]';
      settings.speculationDepthPerBatchSize = byBatch;
    }
    const left = Object.keys(config as object).filter((key) => !READ_OF_SPECULATION.includes(key));
    return left.length === 0 ? undefined : { left };
  },
};

/** Keys of --speculative-config that are read, or that name the draft. */
const READ_OF_SPECULATION = [
  ...['method', 'model', 'num_speculative_tokens', 'num_speculative_tokens_per_batch_size'],
];

/** Flags that change no schedule and no time: addresses, names, logs, how the model is loaded, how answers are written. */
const OF_NO_EFFECT = (
  '--host --port --api-key --served-model-name --download-dir --load-format --revision --tokenizer --tokenizer-mode ' +
  '--tokenizer-revision --chat-template --chat-template-content-format --tool-call-parser --reasoning-parser --response-role ' +
  '--uvicorn-log-level --log-level --seed --root-path --ssl-keyfile --ssl-certfile --allowed-origins --allowed-methods ' +
  '--allowed-headers  --max-log-len --otlp-traces-endpoint --hf-overrides --hf-token ' +
  '--generation-config --distributed-executor-backend --config-format --model-impl --tool-parser-plugin --nccl-port ' +
  '--dist-init-addr --node-rank --nnodes --watchdog-timeout --random-seed --task --runner --convert'
).split(' ');
const OF_NO_EFFECT_ALONE = (
  '--trust-remote-code --enable-auto-tool-choice --disable-log-requests --no-enable-log-requests --enable-log-requests ' +
  '--disable-log-stats --disable-uvicorn-access-log --disable-fastapi-docs --enable-request-id-headers --enable-metrics ' +
  '--enable-prompt-tokens-details --disable-frontend-multiprocessing --enable-server-load-tracking --skip-server-warmup ' +
  '--log-requests --enable-reasoning --enable-chunked-prefill'
).split(' ');

const harmless: Record<string, LaunchFlag> = {
  ...Object.fromEntries(OF_NO_EFFECT.map((name) => [name, nothing])),
  ...Object.fromEntries(OF_NO_EFFECT_ALONE.map((name) => [name, nothingAlone])),
};

const tensor = number('tensorParallel', 1, 64);
const data = number('dataParallel', 1, 64);
const pipeline = number('pipelineParallel', 1, 64);

/** Flags by engine. `--model` and `--model-path` are read apart. */
export const LAUNCH_FLAGS: Readonly<Record<'vLLM' | 'SGLang', Readonly<Record<string, LaunchFlag>>>> = {
  vLLM: {
    ...harmless,
    '--model': nothing,
    '--tensor-parallel-size': tensor,
    '-tp': tensor,
    '--data-parallel-size': data,
    '-dp': data,
    '--pipeline-parallel-size': pipeline,
    '-pp': pipeline,
    '--enable-expert-parallel': turn('expertParallel', true),
    '--max-num-seqs': number('maxNumSeqs', 1, 65_536),
    '--max-model-len': number('maxModelLen', 1, 100_000_000),
    '--max-num-batched-tokens': number('maxNumBatchedTokens', 1, 1_048_576),
    '--gpu-memory-utilization': number('memoryShare', 0.05, 1),
    '--enable-prefix-caching': turn('prefixCaching', true),
    '--no-enable-prefix-caching': turn('prefixCaching', false),
    '--scheduling-policy': policy,
    '--quantization': quantization,
    '-q': quantization,
    '--kv-cache-dtype': kvCache,
    '--speculative-config': speculative,
    '--async-scheduling': turn('asyncScheduling', true),
    '--no-async-scheduling': turn('asyncScheduling', false),
    '--long-prefill-token-threshold': number('longPrefillTokenThreshold', 0, 10_000_000),
    '--long-prefill-token-threshold-adaptive': turn('longPrefillTokenThresholdAdaptive', true),
    '--watermark': number('watermark', 0, 0.99),
    '--scheduler-reserve-full-isl': turn('wholePromptFits', true),
    '--no-scheduler-reserve-full-isl': turn('wholePromptFits', false),
    '--enforce-eager': notSimulatedAlone,
    '--no-enable-chunked-prefill': notSimulatedAlone,
    '--disable-chunked-prefill': notSimulatedAlone,
    '--enable-lora': notSimulatedAlone,
    '--dtype': {
      set: (_, value) =>
        ['auto', 'bfloat16', 'float16', 'half'].includes(value) ? undefined : 'not simulated',
    },
    '--block-size': notSimulated,
    '--compilation-config': notSimulated,
    '--kv-transfer-config': notSimulated,
    '--cpu-offload-gb': notSimulated,
    '--limit-mm-per-prompt': notSimulated,
  },
  SGLang: {
    ...harmless,
    '--model-path': nothing,
    '--tp-size': tensor,
    '--tensor-parallel-size': tensor,
    '--tp': tensor,
    '--dp-size': data,
    '--pp-size': pipeline,
    '--enable-ep-moe': turn('expertParallel', true),
    '--context-length': number('maxModelLen', 1, 100_000_000),
    '--max-running-requests': number('maxNumSeqs', 1, 65_536),
    '--chunked-prefill-size': number('maxNumBatchedTokens', 1, 1_048_576),
    '--mem-fraction-static': number('memoryShare', 0.05, 1),
    '--disable-radix-cache': turn('prefixCaching', false),
    '--quantization': quantization,
    '--kv-cache-dtype': kvCache,
    '--schedule-policy': policy,
    '--enable-priority-scheduling': turn('priority', true),
    '--schedule-low-priority-values-first': nothingAlone,
    '--enable-mixed-chunk': nothingAlone,
    '--speculative-num-steps': number('speculationDepth', 1, 8),
    '--speculative-algorithm': {
      set: (_, value) => (/^(eagle3?|nextn)$/i.test(value) ? undefined : 'not simulated'),
    },
    '--speculative-draft-model-path': nothing,
    '--speculative-eagle-topk': { set: (_, value) => (value === '1' ? undefined : 'not simulated') },
    '--speculative-num-draft-tokens': nothing,
    '--disaggregation-mode': notSimulated,
    '--disable-cuda-graph': notSimulatedAlone,
    '--disable-overlap-schedule': notSimulatedAlone,
  },
};
