import type { Feature } from '../feature.ts';

/** Weight of a new window in the slow averages: they remember about ten windows, five minutes. */
const SLOW = 0.1;
/** And in the fast ones: about two, enough to smooth the noise of a window. */
const FAST = 0.4;

const log = (name: string, of: string, divisor = 1): Feature => ({
  ...{ name, of, transform: 'log1p' },
  ...(divisor !== 1 && { divisor }),
});
const plain = (name: string, of: string, divisor = 1): Feature => ({
  ...{ name, of },
  ...(divisor !== 1 && { divisor }),
});
/** Seconds from about 10 ms on. */
const latency = (name: string, of: string): Feature => log(name, of, 0.01);

const ofClass = (name: string): Feature[] => [
  log(`${name}_arrivals`, `${name}.arrivals_per_second`),
  plain(`${name}_attainment`, `${name}.slo_attainment`),
  latency(`${name}_ttft`, `${name}.time_to_first_token_seconds`),
  log(`${name}_in_flight`, `${name}.num_requests_in_flight`),
  log(`${name}_refused`, `${name}.refused_per_second`),
];

const DEMAND = log('demand', 'arrived_prompt_tokens_per_second', 100);

/**
 * A window as numbers of about the same size: its figures, heavy-tailed ones by their logarithm; demand for each replica;
 * the settings in force; and demand smoothed, and compared to its slow average.
 */
export const FLEET_FEATURES: readonly Feature[] = [
  log('running', 'num_requests_running'),
  log('waiting', 'num_requests_waiting'),
  plain('kv_usage', 'kv_cache_usage_perc'),
  plain('kv_usage_most', 'kv_cache_usage_most'),
  plain('cache_hits', 'prefix_cache_hit_rate'),
  log('prompt_tokens', 'prompt_tokens_per_second', 100),
  log('generation_tokens', 'generation_tokens_per_second', 100),
  DEMAND,
  { ...log('answers', 'request_generation_tokens_mean'), missing: 0, memory: 'filled', weight: SLOW },
  log('success', 'request_success_per_second'),
  log('preemptions', 'num_preemptions'),
  latency('ttft_p50', 'time_to_first_token_seconds_p50'),
  latency('ttft_p99', 'time_to_first_token_seconds_p99'),
  latency('itl_p50', 'inter_token_latency_seconds_p50'),
  latency('itl_p99', 'inter_token_latency_seconds_p99'),
  log('queue_seconds', 'queue_seconds', 0.1),
  log('last_arrivals', 'arrivals_last_seconds'),
  plain('ready', 'replicas_ready', 4),
  plain('starting', 'replicas_starting', 4),
  plain('draining', 'replicas_draining', 4),
  plain('prefilling', 'replicas_prefill', 4),
  plain('second_ready', 'second_replicas_ready', 4),
  plain('second_starting', 'second_replicas_starting', 4),
  plain('bill', 'usd_per_hour', 20),
  plain('revenue', 'revenue_usd_per_hour', 20),
  plain('hour', 'hour_of_day', 24),
  ...ofClass('interactive'),
  ...ofClass('batch'),
  ...ofClass('best_effort'),
  {
    name: 'running_per_replica',
    of: 'num_requests_running',
    plus: 1,
    over: 'replicas_ready',
    over_plus: 1,
    transform: 'log2',
  },
  {
    name: 'waiting_per_replica',
    of: 'num_requests_waiting',
    plus: 1,
    over: 'replicas_ready',
    over_plus: 1,
    transform: 'log2',
  },
  {
    ...{ name: 'demand_per_replica', of: 'arrived_prompt_tokens_per_second', plus: 100 },
    ...{ over: 'replicas_ready', over_plus: 1, divisor: 1000, transform: 'log2' },
  },
  { ...DEMAND, name: 'demand_departure', memory: 'departure', weight: SLOW },
  { ...DEMAND, name: 'demand_fast', memory: 'average', weight: FAST },
  { ...DEMAND, name: 'demand_change', memory: 'change' },
  { ...log('waiting_change', 'num_requests_waiting'), memory: 'change' },
  { ...plain('attainment_fast', 'interactive.slo_attainment'), memory: 'average', weight: FAST },
  plain('wanted', 'action.replicas', 4),
  plain('second_wanted', 'action.second_replicas', 4),
  plain('prefill_wanted', 'action.prefill_replicas', 4),
  plain('routing_queue', 'action.routing_queue'),
  plain('routing_cache', 'action.routing_cache'),
  plain('routing_prefix', 'action.routing_prefix'),
  log('admission', 'action.admission_seconds'),
  { ...plain('budget', 'action.max_num_batched_tokens', 512), transform: 'log2' },
  { ...plain('sequences', 'action.max_num_active_seqs'), transform: 'log2' },
];

const REPLICA = [
  'step_base_ms',
  'step_token_us',
  'step_sequence_us',
  'step_context_ns',
  'kv_cache_tokens',
  'cold_start_seconds',
  'usd_per_replica_hour',
] as const;
const SERVER = [
  ...['max_replicas', 'usd_per_million_input_tokens', 'usd_per_million_output_tokens'],
  ...['ttft_objective_ms', 'tpot_objective_ms'],
];

/** The fleet that the windows are of: constant in an episode, for policies that run many. */
export const FLEET_SERVER_FEATURES: readonly Feature[] = [...REPLICA, ...SERVER]
  .map((name) => log(`server_${name}`, `server.${name}`))
  .concat(REPLICA.map((name) => log(`server_second_${name}`, `server.second.${name}`)));
