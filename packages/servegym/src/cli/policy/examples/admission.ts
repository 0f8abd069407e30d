import { definePolicy } from '@servegym/simulator';

/** Requests a replica from which a class is refused, and the share of them over which the probability falls from 1 to 0. */
const parameters = { batch: 30, bestEffort: 20, width: 1 };

/** Refuses a class with a probability that grows with the load, best effort before batch: no class is cut off at once. */
export default definePolicy({
  admit({ priority }, { replicas }) {
    if (priority === 0) return true;
    let requests = 0;
    for (const each of replicas) requests += each.num_requests_running + each.num_requests_waiting;
    const limit = priority === 1 ? parameters.batch : parameters.bestEffort;
    const over = requests / replicas.length / limit - 1;
    return Math.min(1, Math.max(0, 1 - over / parameters.width));
  },
});
