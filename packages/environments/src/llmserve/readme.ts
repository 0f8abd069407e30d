/** What `GET /metadata` shows of the environment. Markdown. */
export const LLMSERVE_README = `# llmserve

You run an LLM inference server: two GPUs that serve one model behind a router. After each window of five seconds you see what
happened and set six knobs for the next. The server is simulated request by request with vLLM V1's scheduler, on an engine
profile fitted to measurements.

| action | values | costs |
|---|---|---|
| \`batch_cap\` | 1 to 512 | throughput against inter-token latency |
| \`kv_budget_fraction\` | 0.1 to 1 | a small pool preempts; a large one is charged for, and can run out of memory |
| \`speculation_depth\` | 0 to 8 | pays in small batches, not in large ones |
| \`quantization_tier\` | FP16, INT8, INT4 | quality; a change reloads the model |
| \`prefill_decode_split\` | true, false | a fixed division of the GPUs; a change drains them |
| \`priority_routing\` | true, false | the classes that wait |

Tasks: \`static_workload\` (find the right constant), \`bursty_workload\` (adapt, and pay for every switch),
\`adversarial_multitenant\` (three classes beside tenants whose memory swings).

The reward of a window is in [-1, 1]: tokens served and objectives met, less memory held, cost and lost quality.
\`POST /grader\` replays the episode; 0.20 is the task's default configuration, 0.50 the best that never changes, 0.95 a planner that
knows the traffic.

\`\`\`python
from openenv.core import GenericEnvClient

with GenericEnvClient(base_url="http://localhost:7860").sync() as env:
    result = env.reset(task_id="bursty_workload", seed=42)
    while not result.done:
        rush = result.observation["request_arrival_rate"] > 8
        result = env.step({
            "batch_cap": 96 if rush else 48, "kv_budget_fraction": 0.6 if rush else 0.2, "speculation_depth": 3,
            "quantization_tier": "INT8", "prefill_decode_split": False, "priority_routing": True,
        })
\`\`\`
`;
