import { type FleetAction, hpaInFlight, type ReplicaScaler } from '@servegym/environments';
import type { FleetPolicy, FleetStep } from './fleet-policy.ts';

/** Kubernetes' HorizontalPodAutoscaler for the replicas, with other settings beside it. */
export class ScaledPolicy implements FleetPolicy {
  readonly name: string;
  readonly #scaler: ReplicaScaler;
  readonly #settings: (step: FleetStep) => Partial<FleetAction>;

  constructor(
    name: string,
    targetPerReplica: number | null,
    settings: (step: FleetStep) => Partial<FleetAction>,
  ) {
    this.#scaler = hpaInFlight(targetPerReplica ?? undefined);
    this.name = `${name}:${this.#scaler.name.split(':')[1]}`;
    this.#settings = settings;
  }

  reset(): void {
    this.#scaler.reset();
  }

  act(step: FleetStep): FleetAction {
    return { ...this.#scaler.act(step), ...this.#settings(step) };
  }
}

/**
 * Weights of a gateway that prefers replicas which know the prompt: those of llm-d's sample configuration with its prefix
 * cache scorer (2) and its load-aware scorer (1). https://github.com/llm-d/llm-d-inference-scheduler (deploy/config)
 */
export function prefixWeights(): Partial<FleetAction> {
  return { routing_queue: 0.5, routing_prefix: 1 };
}

/** Prompts being prefilled or waiting on a replica from which on P-PAS sees pressure. */
const PRESSURE_PREFILLS = 2;
/** Token budgets of P-PAS without and under pressure. */
const BUDGET = 16_384;
const BUDGET_UNDER_PRESSURE = 2048;

/**
 * Token budget of P-PAS, which caps the prefill of an iteration at 2,048 tokens while two prompts or more are being prefilled
 * or wait, and something is being decoded, and lets 16,384 pass otherwise. The scheduler decides that each iteration, a
 * controller each window, on a mean replica: the prompts that wait, and the share of the time in which one is prefilled.
 * https://github.com/TimoSaemann/ppas-vllm (scheduler/ppas_vllm_0.22.1.patch)
 */
export function pressureBudget({ observation }: FleetStep): Partial<FleetAction> {
  const { replicas_ready, num_requests_waiting, num_requests_running, server } = observation;
  const prefilled = (observation.prompt_tokens_per_second * server.step_token_us) / 1e6;
  const prefills = (num_requests_waiting + prefilled) / Math.max(1, replicas_ready);
  const pressure = prefills >= PRESSURE_PREFILLS && num_requests_running > 0;
  return { max_num_batched_tokens: pressure ? BUDGET_UNDER_PRESSURE : BUDGET };
}
