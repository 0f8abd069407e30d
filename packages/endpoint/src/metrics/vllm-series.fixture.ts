/** Series that vLLM 0.32 exposes, beside the `_created` of its counters and histograms. */
export const VLLM_SERIES: Readonly<
  Record<
    string,
    {
      readonly type: 'counter' | 'gauge' | 'histogram';
      /** Values of labels beside `engine` and `model_name`; none where they depend on the server. */
      readonly labels?: Readonly<Record<string, readonly string[]>>;
      /** Bounds of a server with a context of 4,096 tokens. */
      readonly buckets?: readonly number[];
    }
  >
> = {
  'vllm:estimated_flops_per_gpu_total': { type: 'counter' },
  'vllm:estimated_read_bytes_per_gpu_total': { type: 'counter' },
  'vllm:estimated_write_bytes_per_gpu_total': { type: 'counter' },
  'vllm:num_requests_running': { type: 'gauge' },
  'vllm:num_requests_waiting': { type: 'gauge' },
  'vllm:num_requests_waiting_by_reason': { type: 'gauge', labels: { reason: ['capacity', 'deferred'] } },
  'vllm:engine_sleep_state': {
    type: 'gauge',
    labels: { sleep_state: ['awake', 'weights_offloaded', 'discard_all'] },
  },
  'vllm:kv_cache_usage_perc': { type: 'gauge' },
  'vllm:prefix_cache_queries_total': { type: 'counter' },
  'vllm:prefix_cache_hits_total': { type: 'counter' },
  'vllm:external_prefix_cache_queries_total': { type: 'counter' },
  'vllm:external_prefix_cache_hits_total': { type: 'counter' },
  'vllm:mm_cache_queries_total': { type: 'counter' },
  'vllm:mm_cache_hits_total': { type: 'counter' },
  'vllm:num_preemptions_total': { type: 'counter' },
  'vllm:prompt_tokens_total': { type: 'counter' },
  'vllm:prompt_tokens_by_source_total': {
    type: 'counter',
    labels: { source: ['local_compute', 'local_cache_hit', 'external_kv_transfer'] },
  },
  'vllm:prompt_tokens_cached_total': { type: 'counter' },
  'vllm:prompt_tokens_cached_by_source_total': {
    type: 'counter',
    labels: { source: ['device', 'host', 'p2p', 'disk', 'external_unspecified'] },
  },
  'vllm:generation_tokens_total': { type: 'counter' },
  'vllm:request_success_total': {
    type: 'counter',
    labels: { finished_reason: ['stop', 'length', 'abort', 'error', 'repetition'] },
  },
  'vllm:admission_rejections_total': {
    type: 'counter',
    labels: { reason: ['max_num_queued_reqs', 'max_num_queued_tokens'] },
  },
  'vllm:request_prompt_tokens': {
    type: 'histogram',
    buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000],
  },
  'vllm:request_generation_tokens': {
    type: 'histogram',
    buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000],
  },
  'vllm:iteration_tokens_total': {
    type: 'histogram',
    buckets: [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384],
  },
  'vllm:request_max_num_generation_tokens': {
    type: 'histogram',
    buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000],
  },
  'vllm:request_params_n': { type: 'histogram', buckets: [1, 2, 5, 10, 20] },
  'vllm:request_params_max_tokens': {
    type: 'histogram',
    buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000],
  },
  'vllm:time_to_first_token_seconds': {
    type: 'histogram',
    buckets: [
      0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160,
      640, 2560,
    ],
  },
  'vllm:inter_token_latency_seconds': {
    type: 'histogram',
    buckets: [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80],
  },
  'vllm:request_time_per_output_token_seconds': {
    type: 'histogram',
    buckets: [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80],
  },
  'vllm:e2e_request_latency_seconds': {
    type: 'histogram',
    buckets: [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680],
  },
  'vllm:request_queue_time_seconds': {
    type: 'histogram',
    buckets: [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680],
  },
  'vllm:request_inference_time_seconds': {
    type: 'histogram',
    buckets: [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680],
  },
  'vllm:request_prefill_time_seconds': {
    type: 'histogram',
    buckets: [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680],
  },
  'vllm:request_decode_time_seconds': {
    type: 'histogram',
    buckets: [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680],
  },
  'vllm:request_num_preemptions': { type: 'histogram', buckets: [1, 2, 3, 4, 5, 10, 20] },
  'vllm:request_prefill_kv_computed_tokens': {
    type: 'histogram',
    buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000],
  },
  'vllm:cache_config_info': {
    type: 'gauge',
    labels: {
      block_size: [],
      num_gpu_blocks: [],
      enable_prefix_caching: [],
      cache_dtype: ['auto'],
      kv_cache_size_tokens: [],
      kv_cache_max_concurrency: [],
    },
  },
};
