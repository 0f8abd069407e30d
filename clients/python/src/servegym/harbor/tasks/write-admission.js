// Refuses a class with the probability by which a replica has too many requests of others, best effort before batch.
export default {
  admit({ priority }, { replicas }) {
    let requests = 0;
    for (const each of replicas) requests += each.num_requests_running + each.num_requests_waiting;
    return (
      priority === 0 || Math.min(1, Math.max(0, 2 - requests / replicas.length / (priority === 1 ? 30 : 20)))
    );
  },
};
