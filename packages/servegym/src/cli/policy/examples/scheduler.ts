import { definePolicy, type RequestView } from '@servegym/simulator';

/** Seconds of waiting from which a request is late: a little less than the objective for the first token. */
const parameters = { late: 0.4 };
/** Above the cost of all requests that are not late. */
const LATE = 1e9;

/**
 * The shortest predicted answer first. A late request is worth its objective over its latency, of which each second more takes
 * less: it comes after those that are in time, and later the longer it has waited.
 */
export default definePolicy({
  order(queue, now) {
    const costOf = (request: RequestView) => {
      const tokens = request.predicted_output_tokens ?? 1;
      const waited = now - request.arrival;
      return waited < parameters.late ? tokens : LATE + waited * tokens;
    };
    return queue
      .map((request) => ({ request, cost: costOf(request) }))
      .sort((a, b) => a.cost - b.cost)
      .map(({ request }) => request);
  },
});
