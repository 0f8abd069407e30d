import type { ServedLoad } from '../../packages/profiles/src/fits/served-load.ts';

/**
 * Seconds that batches of 1, 16 and 64 equal requests took, with as many tokens out as in: figures of
 * LLM-Inference-Bench (argonne-lcf, BSD-3-Clause). All rows behind three profiles, and the shortest and the longest
 * prompts of nine more.
 */
const BATCH_SECONDS = `
A100,1,vLLM,llama-3-8b,fp16,fp16,128,1.8263,2.1915,3.2887
A100,1,vLLM,llama-3-8b,fp16,fp16,256,3.6703,4.3817,6.9351
A100,1,vLLM,llama-3-8b,fp16,fp16,1024,14.9357,19.9144,36.162
A100,1,vLLM,llama-3-8b,fp16,fp16,2048,30.0654,46.0713,125.7401
A100,1,vLLM,mistral-7b,fp16,fp16,128,1.7236,2.0955,3.2977
A100,1,vLLM,mistral-7b,fp16,fp16,256,3.5131,4.4319,7.0004
A100,1,vLLM,mistral-7b,fp16,fp16,1024,14.2418,20.1046,39.6725
A100,1,vLLM,mistral-7b,fp16,fp16,2048,28.6451,47.7903,142.9541
H100,1,vLLM,llama-3-8b,fp16,fp16,128,0.9939,1.1651,1.6883
H100,1,vLLM,llama-3-8b,fp16,fp16,256,2.003,2.3995,3.6324
H100,1,vLLM,llama-3-8b,fp16,fp16,1024,8.0978,11.0247,18.8087
H100,1,vLLM,llama-3-8b,fp16,fp16,2048,16.3022,25.5299,48.2152
H100,1,vLLM,llama-3-8b,fp8,fp8,128,0.77,0.9049,1.4434
H100,1,vLLM,llama-3-8b,fp8,fp8,256,1.531,1.874,3.0545
H100,1,vLLM,llama-3-8b,fp8,fp8,1024,6.1448,8.905,16.7661
H100,1,vLLM,llama-3-8b,fp8,fp8,2048,12.4145,21.629,45.7006
A100,1,TensorRT-LLM,llama-3-8b,fp16,int8,1024,14.501,18.1279,30.883
A100,1,TensorRT-LLM,llama-3-8b,int8,int8,1024,10.1969,13.0641,21.0556
A100,2,vLLM,llama-3-8b,fp16,fp16,128,1.2565,1.5354,2.4047
A100,2,vLLM,llama-3-8b,fp16,fp16,2048,20.3604,32.8348,67.3032
A100,2,vLLM,mistral-7b,fp16,fp16,128,1.1983,1.4843,2.4058
A100,2,vLLM,mistral-7b,fp16,fp16,2048,20.0279,31.8445,73.6011
A100,4,vLLM,mistral-7b,fp16,fp16,128,0.8391,1.058,1.7553
A100,4,vLLM,mistral-7b,fp16,fp16,2048,14.0003,21.9259,49.9508
GH200,1,vLLM,llama-3-8b,fp16,fp16,128,0.948,1.1057,1.6717
GH200,1,vLLM,llama-3-8b,fp16,fp16,2048,15.2977,25.0455,50.5727
H100,2,vLLM,llama-3-8b,fp16,fp16,128,0.8514,0.9956,1.5383
H100,2,vLLM,llama-3-8b,fp16,fp16,2048,13.5619,20.6774,39.6126
H100,4,vLLM,llama-3-8b,fp16,fp16,128,0.7602,0.8076,1.3079
H100,4,vLLM,llama-3-8b,fp16,fp16,2048,11.9866,16.2498,33.3427
H100,1,vLLM,mistral-7b,fp16,fp16,128,0.9438,1.1242,1.8706
H100,1,vLLM,mistral-7b,fp16,fp16,2048,15.9918,26.7595,99.4633
H100,2,vLLM,mistral-7b,fp16,fp16,128,0.7835,0.9672,1.6449
H100,2,vLLM,mistral-7b,fp16,fp16,2048,13.2459,20.7206,75.5593
H100,4,vLLM,mistral-7b,fp16,fp16,128,0.7597,0.7853,1.2779
H100,4,vLLM,mistral-7b,fp16,fp16,2048,11.9214,15.9143,35.169
`;

/** Profiles of which the table above has every row that they were fitted to. */
export const WHOLLY_TABLED: readonly string[] = [
  'a100-40gb-llama-3-8b',
  'a100-40gb-mistral-7b',
  'h100-80gb-llama-3-8b',
];

/** The batches as `servegym profile make` reads them. */
export function staticBatchCsv(): string {
  const rows = recordsOf(BATCH_SECONDS).flatMap((fields) => {
    const server = fields.slice(0, 6).join();
    const tokens = fields[6];
    return [1, 16, 64].map((batch, i) => [server, tokens, tokens, batch, fields[7 + i]].join());
  });
  const header = 'gpu,gpus,engine,model,weights,kv_cache,input_tokens,output_tokens,batch,latency_s';
  return `${[header, ...rows].join('\n')}\n`;
}

/**
 * Loads of equal requests on vLLM 0.15, ten minutes at one rate and ten at another: figures of the inference-sim project.
 * Run, model, GPU, GPUs, weights, token budget, KV blocks where known, both rates (1/s), tokens in and out, mean and p99
 * of TTFT and mean end-to-end latency (ms).
 */
const LOADS = `
17,RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic,H100,2,FP8,2048,8253,2.5,6,547,248,62.74,106.92,5270.1
20,RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic,H100,2,FP8,2048,8253,5,10,566,247,72.824,112.61,6238.3
21,RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic,H100,2,FP8,2048,8253,6,6,750,251,67.028,116.11,5803.8
60,meta-llama/Llama-3.1-70B-Instruct,H100,4,FP16,8192,30251,2.5,6,547,248,53.7,75.927,4502
61,meta-llama/Llama-3.1-70B-Instruct,H100,4,FP16,2048,30425,5,10,566,247,58.114,76.692,4840.7
62,mistralai/Mistral-Nemo-Instruct-2407,H100,2,FP16,1024,48009,2.5,6,547,248,21.691,31.553,1534
63,mistralai/Mistral-Nemo-Instruct-2407,H100,1,FP16,2048,19251,5,10,566,247,33.118,41.888,2568.5
64,Qwen/Qwen2.5-7B-Instruct,H100,1,FP16,2048,65352,6,6,750,251,26.716,44.719,1771.8
65,01-ai/Yi-34B,H100,2,FP16,2048,20793,2.5,6,547,248,46.981,66.685,3892.6
10,mistralai/Mixtral-8x7B-v0.1,H100,2,FP16,2048,,5,10,566,247,58.855,69.999,4675.2
14,Qwen/Qwen3-14B,H100,1,FP16,2048,,5,10,566,247,42.065,63.755,3318.7
16,meta-llama/Llama-3.1-8B-Instruct,H100,1,FP16,2048,,8,20,547,248,28.547,36.559,2168
18,meta-llama/Llama-3.1-8B-Instruct,H100,1,FP16,2048,,5,10,566,247,25.281,31.258,1889.7
26,meta-llama/Llama-3.1-8B-Instruct,H100,2,FP16,2048,,8,20,547,248,20.95,28.519,1356.1
31,mistralai/Mixtral-8x7B-v0.1,H100,4,FP16,2048,,8,20,547,248,37.028,44.264,2799.5
36,Qwen/Qwen3-14B,A100-80GB,1,FP16,2048,,2.5,6,547,248,85.139,125.94,6884.3
38,meta-llama/Llama-3.1-8B-Instruct,A100-80GB,1,FP16,2048,,2.5,6,547,248,44.848,69.62,3457.3
40,codellama/CodeLlama-34b-Instruct-hf,A100-80GB,2,FP16,2048,,2.5,6,547,248,87.134,153.22,7070.9
41,meta-llama/Llama-2-70b-hf,A100-80GB,4,FP16,2048,,2.5,6,547,248,108.67,180.37,9029.8
50,mistralai/Mixtral-8x22B-Instruct-v0.1,H100,8,FP16,2048,,5,10,566,247,58.169,66.926,4447
55,meta-llama/Llama-3.1-8B-Instruct,L40S,1,FP16,2048,,2.5,6,547,248,85.415,112.21,7467.2
`;

export const MEASURED_LOADS: readonly ServedLoad[] = recordsOf(LOADS).map(
  ([run, model, gpu, tp, weights, ...figures]) => {
    const [budget, kvBlocks, first, second, input, output, ttftMean, ttftP99, e2eMean] = figures.map(Number);
    return {
      run,
      model,
      gpu,
      tp: Number(tp),
      weights: weights as ServedLoad['weights'],
      max_num_seqs: 128,
      max_num_batched_tokens: budget,
      ...(kvBlocks > 0 && { kv_blocks: kvBlocks }),
      stages: [first, second].map((rate) => ({ duration: 600, rate })),
      input_tokens: input,
      output_tokens: output,
      ttft_mean_ms: ttftMean,
      ttft_p99_ms: ttftP99,
      e2e_mean_ms: e2eMean,
    };
  },
);

/**
 * 300 ShareGPT requests on vLLM 0.19 with Llama-3.1-8B on an RTX 4090, far more than it can serve: figures of
 * LLMServingSim (casys-kaist, MIT). Lengths are quantiles at evenly spaced probabilities, 0 and 1 among them.
 */
export const OVERLOADED_RUN = {
  requests: 300,
  /** From the first arrival to the last, ms. */
  arrivalMs: 29_121,
  inputTokens: [
    262, 308, 363, 389, 436, 483, 522, 579, 621, 655, 733, 798, 833, 899, 1017, 1109, 1213, 1320, 1458, 1747,
    3998,
  ],
  outputTokens: [
    512, 524, 531, 539, 550, 562, 574, 583, 592, 607, 633, 667, 698, 724, 751, 767, 768, 769, 770, 773, 1021,
  ],
  kvBlocks: 2588,
  maxNumSeqs: 256,
  maxNumBatchedTokens: 2048,
  ttftMeanMs: 65_457,
  ttftP99Ms: 137_356,
  tpotMeanMs: 32.45,
  e2eMeanMs: 86_578,
  e2eP99Ms: 153_628,
  makespanMs: 183_567,
} as const;

function recordsOf(table: string): string[][] {
  return table
    .trim()
    .split('\n')
    .map((line) => line.split(','));
}
