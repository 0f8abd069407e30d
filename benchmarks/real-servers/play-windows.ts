// Plays windows of `llmserve` on a server in real mode and prints what was measured:
// node benchmarks/real-servers/play-windows.ts [--url http://localhost:7860] [--windows 6] [--task static_workload]
import { parseArgs } from 'node:util';
import { llmserve } from '@servegym/environments';
import { connect } from '@servegym/openenv/client';
import type { RealReport } from '../../packages/environments/src/llmserve/real/real-episode.ts';

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://localhost:7860' },
    windows: { type: 'string', default: '6' },
    task: { type: 'string', default: 'static_workload' },
  },
});

const session = await connect<typeof llmserve>(values.url);
try {
  await session.reset({ task_id: values.task, seed: 1 });
  console.log(
    '| window | completed | prompt tokens | output tokens | TTFT p50, ms | TTFT p99, ms | ITL p50, ms | output tokens/s | KV occupancy | TTFT beyond the server, ms |',
  );
  console.log('|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|');
  let report: RealReport | undefined;
  for (let i = 1; i <= Number(values.windows); i++) {
    const { observation, metadata } = await session.step(llmserve.defaultAction);
    report = metadata as unknown as RealReport;
    const { requests, tokens, not_observed, ttft_overhead_ms } = report;
    const kv = not_observed.includes('kv_cache_occupancy') ? '' : observation.kv_cache_occupancy.toFixed(3);
    const cells = [
      i,
      `${requests.completed} of ${requests.sent}`,
      tokens.prompt,
      tokens.completion,
      observation.p50_ttft_ms.toFixed(1),
      observation.p99_ttft_ms.toFixed(1),
      observation.p50_itl_ms.toFixed(1),
      observation.throughput_tps.toFixed(1),
      kv,
      ttft_overhead_ms?.toFixed(1) ?? '',
    ];
    console.log(`| ${cells.join(' | ')} |`);
    for (const error of Object.values(requests.errors)) console.log(error);
  }
  console.log(`\nrefused_fields ${JSON.stringify(report?.refused_fields, null, 2)}`);
  console.log(`applied ${JSON.stringify(report?.applied)}; not observed ${report?.not_observed.join(', ')}`);
} finally {
  await session.close();
}
