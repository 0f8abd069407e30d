import { LONGEST_WAIT_S } from './schema.ts';

/** What `GET /metadata` and the console show of the environment. Markdown. */
export const BENCHMARK_README = `# benchmark

An environment for testing servers and what stands before them. It plays nothing: a step waits as long as it is told and
then says who answered, so that a crowd of clients shows how many sessions a deployment holds, how late it answers and
how a balancer spreads them.

| action | |
|---|---|
| \`wait_seconds\` | how long to wait before answering, 0 to ${LONGEST_WAIT_S} s; default 0 |

| observation | |
|---|---|
| \`host_url\` | the server that answered |
| \`pid\` | the process that answered |
| \`session_hash\` | 16 characters, the same for all answers of a session |
| \`waited_seconds\` | how long the step really waited, s; 0 after a reset |
| \`timestamp\` | when the server answered, seconds since 1970 |

The reward is \`1 / (1 + wait_seconds)\`. An episode never ends. A seed changes nothing; sessions are not kept beyond
their connection, because a wait cannot be replayed.

\`\`\`sh
npx servegym bench server --url http://localhost:7860 --requests 1..1024 --wait 1
\`\`\`

\`\`\`python
from openenv.core import GenericEnvClient

with GenericEnvClient(base_url="http://localhost:7860").sync() as env:
    env.reset()
    result = env.step({"wait_seconds": 0.5})
    print(result.observation["session_hash"], result.observation["waited_seconds"], result.reward)
\`\`\`
`;
