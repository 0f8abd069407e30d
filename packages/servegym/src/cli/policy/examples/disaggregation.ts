import { definePolicy } from '@servegym/simulator';

/** Prompt tokens from which a request is prefilled apart, and seconds of queue up to which it is. */
const parameters = { tokens: 4000, queue: 0.2 };

/** Long prompts are prefilled apart, where they hold up nobody's tokens, as long as nobody waits for that. */
export default definePolicy({
  disaggregate: (request, fleet) =>
    request.prompt_tokens > parameters.tokens && fleet.queue_seconds < parameters.queue,
});
