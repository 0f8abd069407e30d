import type { FleetObservation } from '@servegym/environments';
import { definePolicy } from '@servegym/simulator';

const parameters = {
  // Times the work that prompts and answers are, and replicas for a waiting request.
  prompts: 2.84,
  answers: 0.682,
  waiting: 0.151,
  // Exponent of a rise of the arrivals, replicas beyond, and share of the most so far that is kept for a window.
  trend: 0.292,
  spare: 2.29,
  decay: 0.758,
  // How fast late requests correct it, those accepted for each share of the income that goes to GPUs, and the most it is corrected by.
  feedback: 0.243,
  thrift: 0.69,
  most: 1.68,
};

/**
 * Replicas for the seconds of GPU that the arriving tokens take, more when arrivals rise or requests wait. More of late requests
 * raise it and fewer lower it; where GPUs cost much of what the answers earn, more may be late.
 */
export default definePolicy<FleetObservation>(() => {
  let kept = 0;
  let correction = 1;
  return {
    scale(metrics, fleet, now) {
      if (now === 0) return fleet.replicas;
      const { server, interactive, arrivals_last_seconds: latest } = metrics;
      const { feedback, thrift, most } = parameters;
      const classes = [interactive, metrics.batch, metrics.best_effort];
      const arrivals = classes.reduce((sum, each) => sum + each.arrivals_per_second, 0);
      const asked = metrics.arrived_prompt_tokens_per_second;
      const answers = arrivals * metrics.request_generation_tokens_mean;
      const income =
        0.0036 *
        (asked * server.usd_per_million_input_tokens + answers * server.usd_per_million_output_tokens);
      const cost = Math.min(1, (server.usd_per_replica_hour * fleet.replicas!) / Math.max(1e-9, income));
      const missed = 1 - interactive.slo_attainment - thrift * cost;
      correction = Math.min(most, Math.max(1 / most, correction * Math.exp(feedback * missed)));
      const prompts = asked * (1 - metrics.prefix_cache_hit_rate);
      const busy =
        (parameters.prompts * prompts + parameters.answers * answers) * server.step_token_us * 1e-6;
      const rise = Math.max(1, latest / Math.max(1e-9, arrivals)) ** parameters.trend;
      kept = Math.max(busy * rise * correction, parameters.decay * kept);
      const more = parameters.waiting * metrics.num_requests_waiting + parameters.spare;
      return Math.max(1, Math.ceil(kept + more));
    },
  };
});
