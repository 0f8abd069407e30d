import { definePolicy, type RequestView } from '@servegym/simulator';

/** Prompt tokens that an output token and a second of waiting weigh. */
const parameters = { output: 10, waited: 100 };

/** The shortest prompt and predicted answer first; waiting makes a request shorter, so that none waits for ever. */
export default definePolicy({
  order(queue, now) {
    const costOf = (request: RequestView) =>
      request.prompt_tokens +
      parameters.output * (request.predicted_output_tokens ?? 0) -
      parameters.waited * (now - request.arrival);
    return queue
      .map((request) => ({ request, cost: costOf(request) }))
      .sort((a, b) => a.cost - b.cost)
      .map(({ request }) => request);
  },
});
