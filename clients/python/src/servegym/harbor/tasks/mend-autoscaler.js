export default {
  // Replicas wanted, every 30 s: one more where the KV cache is full, else one less.
  scale(metrics, fleet) {
    const step = metrics.kv_cache_usage_perc > 0.9 ? 1 : -1;
    return Math.max(1, fleet.replicas + step);
  },
};
