// Which value of each knob is best where a good policy goes: in states that the clairvoyant planner visits, every value
// of a discrete knob and values of each third of a range are held for eight windows, and the plan goes on for four more.
// Shares of the states in which a bin is best, or as good as the best; states in which a knob changes nothing are left out.
import { parseArgs } from 'node:util';
import { AGENTS } from '@servegym/agents';
import { llmserve, SEED_SPLITS } from '@servegym/environments';

const { values } = parseArgs({
  options: {
    episodes: { type: 'string', default: '6' },
    states: { type: 'string', default: '30' },
    json: { type: 'boolean', default: false },
  },
});
const EPISODES = Number(values.episodes);
/** In each episode. */
const STATES = Number(values.states);

const rows = [];
for (const taskId of ['bursty_workload', 'adversarial_multitenant'] as const) {
  const task = llmserve.tasks.shipped[taskId];
  const episodes = Array.from({ length: EPISODES }, (_, i) => {
    const seed = SEED_SPLITS.test.first + i;
    const requests = llmserve.drawRequests(task, seed);
    const { actions } = AGENTS.llmserve.plan(task, seed, {
      requests,
      configurations: llmserve.anchors.configurations(task),
    });
    return { seed, actions };
  });
  rows.push({ task: taskId, ...AGENTS.llmserve.knobDominance(task, episodes, EPISODES * STATES).figures });
}
if (values.json) console.log(JSON.stringify(rows));
else for (const row of rows) console.log(row);
