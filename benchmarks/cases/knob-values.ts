import { AGENTS } from '@servegym/agents';
import { llmserve, SEED_SPLITS } from '@servegym/environments';
import { benchmark } from '../harness.ts';

export default benchmark({
  what: 'Which value of each knob is best where a good policy goes: in states that the clairvoyant planner visits, every value of a discrete knob and values of each third of a range are held for eight windows, and the plan goes on for four more. Shares of the states in which a bin is best, or as good as the best; states in which a knob changes nothing are left out.',
  options: { episodes: 6, states: 30 },
  *run({ episodes, states }) {
    for (const taskId of ['bursty_workload', 'adversarial_multitenant'] as const) {
      const task = llmserve.tasks.shipped[taskId];
      const played = Array.from({ length: episodes }, (_, i) => {
        const seed = SEED_SPLITS.test.first + i;
        const requests = llmserve.drawRequests(task, seed);
        const { actions } = AGENTS.llmserve.plan(task, seed, {
          requests,
          configurations: llmserve.anchors.configurations(task),
        });
        return { seed, actions };
      });
      const { figures } = AGENTS.llmserve.knobDominance(task, played, episodes * states);
      for (const [knob, shares] of Object.entries(figures))
        yield { task: taskId, knob, shares: JSON.stringify(shares) };
    }
  },
});
