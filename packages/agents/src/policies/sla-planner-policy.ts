import { type FleetAction, type FleetObservation, REQUEST_CLASSES } from '@servegym/environments';
import type { Policy, PolicyStep } from '../core/policy.ts';

/** Sequences of the profiled decode batches. */
const PROFILED_BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
/** The corrected objective stays above an empty iteration by this share, where no batch could meet it. */
const LEAST_ROOM = 0.1;

/**
 * NVIDIA Dynamo's SLA planner in its throughput mode: forecast the requests of the next interval and their lengths, divide
 * them by the throughput that profiling found for a replica inside the objectives, and correct it by how much slower the
 * running fleet is than the profile says. The forecast is Dynamo's `constant` predictor: the next interval is like the last.
 *
 * Prefill and decode of Dynamo stand on replicas of their own. Those of a fleet do both, so that their needs are added
 * before they are rounded up. The profile is that of the iteration law in `observation.server`, at ten decode batches with
 * interpolation between them.
 * https://docs.nvidia.com/dynamo/design-docs/planner-design
 */
export class SlaPlannerPolicy implements Policy<FleetAction, FleetObservation> {
  readonly name = 'sla-planner';

  reset(): void {}

  act({ observation, previousAction, stepIndex }: PolicyStep<FleetAction, FleetObservation>): FleetAction {
    const { server, replicas_ready: ready, replicas_starting: starting } = observation;
    const arrivals = REQUEST_CLASSES.reduce((sum, name) => sum + observation[name].arrivals_per_second, 0);
    // It waits until the workers are there that it asked for.
    if (stepIndex === 0 || ready === 0 || starting > 0 || arrivals === 0) return previousAction;
    const prompt = observation.arrived_prompt_tokens_per_second / arrivals;
    const answer = observation.request_generation_tokens_mean;
    const context = prompt + answer / 2;
    const { step_token_us: tokenUs, tpot_objective_ms: objectiveMs } = server;

    const perReplica = observation.num_requests_running / ready;
    const expectedMs = interTokenMs(server, perReplica, context);
    const slower = (observation.inter_token_latency_seconds_p50 * 1000) / expectedMs;
    const correction = slower > 0 ? slower : 1;
    const prompts = observation.arrived_prompt_tokens_per_second * (1 - observation.prefix_cache_hit_rate);
    const prefill = (prompts * tokenUs) / 1e6;
    const itl = Math.max(objectiveMs / correction, server.step_base_ms * (1 + LEAST_ROOM));
    const decode = (arrivals * answer) / decodeTokensPerSecond(server, context, itl);
    const wanted = Math.ceil(prefill + decode);
    return { ...previousAction, replicas: Math.max(1, Math.min(server.max_replicas, wanted)) };
  }
}

type Server = FleetObservation['server'];

/** Time between two tokens of a batch of sequences with `context` tokens each, interpolated between profiled batches, ms. */
function interTokenMs(server: Server, sequences: number, context: number): number {
  const at = (batch: number) =>
    server.step_base_ms + (server.step_sequence_us / 1000 + (server.step_context_ns * context) / 1e6) * batch;
  const next = PROFILED_BATCHES.findIndex((batch) => batch >= sequences);
  if (next <= 0) return at(next === 0 ? PROFILED_BATCHES[0]! : PROFILED_BATCHES.at(-1)!);
  const low = PROFILED_BATCHES[next - 1]!;
  const high = PROFILED_BATCHES[next]!;
  return at(low) + ((at(high) - at(low)) * (sequences - low)) / (high - low);
}

/** Most output tokens a second of a replica whose inter-token latency stays within `itl` ms. */
function decodeTokensPerSecond(server: Server, context: number, itl: number): number {
  let sequences = 1;
  for (const [i, high] of PROFILED_BATCHES.entries()) {
    const slow = interTokenMs(server, high, context);
    if (slow <= itl) {
      sequences = high;
      continue;
    }
    if (i > 0) {
      const low = PROFILED_BATCHES[i - 1]!;
      const fast = interTokenMs(server, low, context);
      sequences = low + ((high - low) * (itl - fast)) / (slow - fast);
    }
    break;
  }
  const fits = server.kv_cache_tokens / context;
  const batch = Math.min(sequences, fits);
  return (batch / interTokenMs(server, batch, context)) * 1000;
}
