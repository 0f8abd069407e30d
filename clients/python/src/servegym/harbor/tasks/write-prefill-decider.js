// Long prompts are prefilled apart, while nobody waits.
export default {
  disaggregate: ({ prompt_tokens }, { queue_seconds }) => prompt_tokens > 4000 && queue_seconds < 0.2,
};
