import type { FleetObservation } from '@servegym/environments';
import { definePolicy } from '@servegym/simulator';

/** Times the work that prompts and answers are, replicas beyond it, and share of the most so far that is kept for a window. */
const parameters = { prompts: 3.29, answers: 0.58, waiting: 0.146, trend: 0.431, spare: 1.34, decay: 0.967 };

/** Replicas for the seconds of GPU that the arriving tokens take, more when arrivals rise or requests wait. */
export default definePolicy<FleetObservation>(() => {
  let kept = 0;
  return {
    scale(metrics, fleet, now) {
      if (now === 0) return fleet.replicas;
      const { server, arrivals_last_seconds: latest } = metrics;
      const arrivals =
        metrics.interactive.arrivals_per_second +
        metrics.batch.arrivals_per_second +
        metrics.best_effort.arrivals_per_second;
      const prompts = metrics.arrived_prompt_tokens_per_second * (1 - metrics.prefix_cache_hit_rate);
      const answers = arrivals * metrics.request_generation_tokens_mean;
      const rise = Math.max(1, latest / Math.max(1e-9, arrivals)) ** parameters.trend;
      const busy =
        (parameters.prompts * prompts + parameters.answers * answers) * server.step_token_us * 1e-6;
      kept = Math.max(busy * rise, parameters.decay * kept);
      return Math.max(
        1,
        Math.ceil(kept + parameters.waiting * metrics.num_requests_waiting + parameters.spare),
      );
    },
  };
});
