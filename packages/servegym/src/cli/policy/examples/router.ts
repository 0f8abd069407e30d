import { definePolicy } from '@servegym/simulator';

/** Costs of a replica in tokens of a prompt, and seconds after which half of what was sent is done. */
const parameters = { prefix: 1300, queued: 0.0167, running: 837, waiting: 1730, kv: 3110, fade: 0.213 };

/** To the replica where a prompt costs least: tokens to compute, those before it, and requests that it will run beside. */
export default definePolicy({
  score(request, replica) {
    // What was sent long before the last look is done, or in its figures.
    const sent = replica.requests_sent * Math.min(1, parameters.fade / Math.max(1e-9, replica.scrape_age));
    return (
      parameters.prefix * replica.prefix_match -
      (request.prompt_tokens - replica.prefix_match_tokens) -
      parameters.queued * replica.prompt_tokens_queued -
      parameters.running * (replica.num_requests_running + sent) -
      parameters.waiting * replica.num_requests_waiting -
      parameters.kv * replica.kv_cache_usage_perc
    );
  },
});
