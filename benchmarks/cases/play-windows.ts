import { llmserve } from '@servegym/environments';
import { connect } from '@servegym/openenv/client';
import type { RealReport } from '../../packages/environments/src/llmserve/real/real-episode.ts';
import { benchmark } from '../harness.ts';

export default benchmark({
  what: 'Windows of `llmserve` on a server in real mode: what was measured in each, and what the server was told.',
  options: { url: 'http://localhost:7860', windows: 6, task: 'static_workload' },
  async *run({ url, windows, task }) {
    const session = await connect<typeof llmserve>(url);
    try {
      await session.reset({ task_id: task, seed: 1 });
      let report: RealReport | undefined;
      for (let window = 1; window <= windows; window++) {
        const { observation, metadata } = await session.step(llmserve.defaultAction);
        report = metadata as unknown as RealReport;
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
      yield `refused_fields ${JSON.stringify(report?.refused_fields, null, 2)}`;
      yield `applied ${JSON.stringify(report?.applied)}; not observed ${report?.not_observed.join(', ')}`;
    } finally {
      await session.close();
    }
  },
});
