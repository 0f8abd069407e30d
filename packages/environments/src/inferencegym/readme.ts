import { EPISODE_STEPS, QUEUE_CAPACITY } from './schema.ts';

/** What `GET /metadata` shows of the environment. Markdown. */
export const INFERENCEGYM_README = `# inferencegym

You run an LLM inference server. A table of measurements says what it can do in each configuration; the traffic is drawn
from the seed. An episode has ${EPISODE_STEPS} steps of one second. Up to ${QUEUE_CAPACITY} requests wait.

| action | values | default |
|---|---|---|
| \`kv_budget\` | 0.1 to 1 | 1.0 |
| \`spec_length\` | 0, 1, 2, 4, 8 | 0 |
| \`batch_size\` | 1 to 512 | 32 |
| \`prefill_disagg\` | true, false | false |
| \`quant_tier\` | 0 FP16, 1 INT8, 2 INT4 | 0 |

Task 1 leaves you \`kv_budget\` and \`batch_size\`, task 2 also \`spec_length\`, task 3 all five. Knobs that are not active
keep their defaults. More than 40 GB is out of memory: the batch is lost and the server starts anew.

The reward of a step is \`alpha T - beta L - gamma V - delta C\` in [-1, 1]: throughput, time to first token over its
objective, violated share, cost. \`POST /grader\` replays the episode and says in words what was lost where.

\`\`\`python
from openenv.core import GenericEnvClient

with GenericEnvClient(base_url="http://localhost:7860").sync() as env:
    result = env.reset(task_id=1, seed=42)
    while not result.done:
        result = env.step({"batch_size": 160, "kv_budget": 0.8})
\`\`\`
`;
