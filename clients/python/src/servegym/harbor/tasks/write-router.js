// The cheapest replica by a linear law of what a prompt adds to it. What was sent since an old scrape says little.
export default {
  score(request, replica) {
    const sent = replica.requests_sent * Math.min(1, 0.264 / Math.max(1e-9, replica.scrape_age));
    const fresh = request.prompt_tokens - replica.prefix_match_tokens;
    return (
      1.31 * replica.prefix_match -
      0.00084 * fresh -
      0.0000105 * replica.prompt_tokens_queued -
      0.535 * (replica.num_requests_running + sent) -
      0.817 * replica.num_requests_waiting -
      1.16 * replica.kv_cache_usage_perc
    );
  },
};
