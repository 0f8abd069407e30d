import { findPolicy } from '@servegym/agents';
import { llmserve } from '@servegym/environments';
import { connect } from '@servegym/openenv/client';
import { mean } from '@servegym/simulator/statistics';
import type { RealReport } from '../../packages/environments/src/llmserve/real/real-episode.ts';
import { benchmark } from '../harness.ts';

export default benchmark({
  what: 'Windows of `llmserve` on a server in real mode: what was measured in each, and what the server was told; with a policy of the catalogue, and the means.',
  options: { url: 'http://localhost:7860', windows: 6, task: 'static_workload', policy: 'default' },
  async *run({ url, windows, task, policy: name }) {
    const { policy } = findPolicy('llmserve', name);
    const played: (readonly [reward: number, inSlo: number, ttftMs: number])[] = [];
    const session = await connect<typeof llmserve>(url);
    try {
      let { observation, reward } = await session.reset({ task_id: task, seed: 1 });
      policy.reset({ taskId: task, seed: 1, resetOptions: {} });
      let previousAction = llmserve.choose({ task_id: task }).defaultAction;
      let report: RealReport | undefined;
      for (let window = 1; window <= windows; window++) {
        const seen = { observation, reward, previousAction, stepIndex: window - 1 };
        previousAction = policy.act(seen) as typeof previousAction;
        const result = await session.step(previousAction);
        ({ observation, reward } = result);
        report = result.metadata as unknown as RealReport;
        played.push([reward!, observation.slo_compliance_rate, observation.p99_ttft_ms]);
        const { requests, tokens, not_observed, ttft_overhead_ms } = report;
        yield {
          window,
          completed: `${requests.completed} of ${requests.sent}`,
          'prompt tokens': tokens.prompt,
          'output tokens': tokens.completion,
          'TTFT p50, ms': observation.p50_ttft_ms,
          'TTFT p99, ms': observation.p99_ttft_ms,
          'ITL p50, ms': observation.p50_itl_ms,
          'output tokens/s': observation.throughput_tps,
          'KV occupancy': not_observed.includes('kv_cache_occupancy') ? null : observation.kv_cache_occupancy,
          'TTFT beyond the server, ms': ttft_overhead_ms ?? null,
        };
        for (const error of Object.values(requests.errors)) yield String(error);
      }
      const [earned, inSlo, ttftMs] = [0, 1, 2].map((figure) => mean(played.map((each) => each[figure]!)));
      yield `${name}: reward ${earned!.toFixed(3)}, in SLO ${inSlo!.toFixed(3)}, p99 TTFT ${ttftMs!.toFixed(0)} ms: means of the windows`;
      yield `observation.server ${JSON.stringify({ ...observation.server, free: undefined })}`;
      yield `refused_fields ${JSON.stringify(report?.refused_fields, null, 2)}`;
      yield `applied ${JSON.stringify(report?.applied)}; not observed ${report?.not_observed.join(', ')}`;
    } finally {
      await session.close();
    }
  },
});
