import type { LoadLatencies } from '../../packages/profiles/src/fits/served-load.ts';
import { table } from '../harness.ts';
import type { Fidelity, PointRow } from './fidelity.ts';
import { pointsReport } from './points-report.ts';

const LATENCIES: readonly (readonly [keyof LoadLatencies, string])[] = [
  ['ttftMean', 'TTFT mean'],
  ['ttftP99', 'TTFT p99'],
  ['itlMean', 'ITL mean'],
  ['e2eMean', 'E2E mean'],
];

/** The report that `fidelity` writes, in Markdown. */
export function fidelityReport(
  { staticBatches, quantized, replay, servedLoads, recordedLoads, speculation }: Fidelity,
  points: readonly PointRow[] | null = null,
): string {
  return `# Fidelity

How near the simulator comes to measurements of real servers. This page is written by

\`\`\`sh
npx node benchmarks/run.ts fidelity --data reference-data${points === null ? '' : ' --tables aiconfigurator_core --answers answers.jsonl'} --output docs/fidelity.md
\`\`\`

from the public measurements that [reference-data.md](reference-data.md) describes.

Errors are relative to the measurement. A signed error is positive when the simulator says more.

## Static batches

Latency of whole batches of equal requests on vLLM: batch 1, 16 and 64, 128 to 2048 tokens in and as many out
(LLM-Inference-Bench, BSD-3-Clause). Each row is predicted by a fit that left it out. Batches that do not fit the KV
memory at once take part in no fit: what makes them slow is preemption, which the engine does by itself.

${table(
  ['profile', 'rows', 'mean', 'worst', 'overflowing batch'],
  staticBatches.map(({ profile, rows, leftOutMean, leftOutWorst, overflowing }) => [
    `\`${profile}\``,
    `${rows}`,
    plain(leftOutMean),
    plain(leftOutWorst),
    overflowing.map(signed).join(', ') || '-',
  ]),
)}

Mean over all ${sum(staticBatches.map(({ rows }) => rows))} rows: **${plain(
    sum(staticBatches.map(({ rows, leftOutMean }) => rows * leftOutMean)) /
      sum(staticBatches.map(({ rows }) => rows)),
  )}**.

### What these batches leave open

- **Between 16 and 64 sequences** nothing is measured. Six of these profiles have a step there (\`manySequences\`), at the batch from which vLLM
  before V1 takes another attention kernel. For \`h100-80gb-mistral-7b\` a token of context costs 91 ns up to 16 sequences and 184 ns above.
  Kernel tables of vLLM 0.24 have no step: 47 ns for one sequence and 41 ns for 64. The rows cannot tell a step from a ramp, so do not trust
  batches of 17 to 63 on profiles with one.
- **Prefill** is measured in no row by itself, since no row has a TTFT. Fits stay near the data sheets: 71 us a token for
  \`a100-40gb-llama-3-8b\`, where kernel tables, scaled from A100-80GB, say 57. Expect its TTFT to be too long.
- The profiles keep both: tasks of \`llmserve\` and \`fleet\` are played on them, and recorded results hold for them alone. For other work
  take a profile from kernel tables or of your own server (\`profile make\`).

## Quantized weights

FP8: latencies on vLLM with an FP8 KV cache. INT8: speedups over FP16 with TensorRT-LLM, applied to the profile's own
FP16 law. Each row is predicted by a fit that left it out.

${table(
  ['profile', 'weights', 'rows', 'mean', 'worst'],
  quantized.map(({ profile, weights, rows, leftOutMean, leftOutWorst }) => [
    `\`${profile}\``,
    weights,
    `${rows}`,
    plain(leftOutMean),
    plain(leftOutWorst),
  ]),
)}

Mean over all ${sum(quantized.map(({ rows }) => rows))} rows: **${plain(
    sum(quantized.map(({ rows, leftOutMean }) => rows * leftOutMean)) /
      sum(quantized.map(({ rows }) => rows)),
  )}**.

## A run of vLLM under overload, request by request

${replay.requests} requests on vLLM 0.19 with Llama-3.1-8B on an RTX 4090, far more than it can serve (LLMServingSim, MIT).
The profile is made from kernel times of that GPU alone, with 0.8 ms of CPU work an iteration; it has seen nothing of
the run. The replay preempts ${replay.preemptions} times.

${table(
  ['TTFT mean', 'TTFT p99', 'TPOT mean', 'end to end mean', 'end to end p99', 'makespan'],
  [
    [replay.ttftMean, replay.ttftP99, replay.tpotMean, replay.e2eMean, replay.e2eP99, replay.makespan].map(
      signed,
    ),
  ],
)}

## Served loads

${servedLoads.length} loads on vLLM 0.15 (inference-sim): equal requests with exponential gaps, whose prompts repeat after 100 requests, so that the
prefix cache has all but the end of nearly every prompt. Arrivals are drawn; KV blocks and lengths are as published, or as
the publishers' names of the loads imply. Profiles are estimated from data sheets; one set of constants serves all models
(\`benchmarks/run.ts engine-constants\`). Shares of a data sheet's bandwidth and arithmetic are fitted for H100,
A100 and L40S. Left out: the same errors under constants moved by
one step of a fit without the loads of that model on that GPU.

${table(
  [
    'run',
    'model',
    'GPUs',
    ...LATENCIES.map(([, name]) => name),
    ...LATENCIES.map(([, name]) => `left out: ${name}`),
  ],
  servedLoads.map((load) => [
    load.run,
    load.model,
    load.gpus,
    ...LATENCIES.map(([what]) => signed(load[what])),
    ...LATENCIES.map(([what]) => signed(load.leftOut[what])),
  ]),
)}

Median errors, left out:

${table(
  ['loads', 'count', ...LATENCIES.map(([, name]) => name)],
  [...new Set(servedLoads.map(({ group }) => group)), 'all'].map((group) => {
    const loads = servedLoads.filter((load) => group === 'all' || load.group === group);
    return [
      group,
      `${loads.length}`,
      ...LATENCIES.map(([what]) => `**${plain(median(loads.map(({ leftOut }) => leftOut[what])))}**`),
    ];
  }),
)}

Profiles from kernel tables on the same loads: see [kernel-tables.md](kernel-tables.md#how-near).

## Served loads, request by request

Loads of the same campaign of which every request is known: the arrivals are the recorded ones. Median error of the
latencies of single requests, after the first 100, at which the server compiles kernels.

${table(
  ['load', 'requests', 'TTFT', 'end to end'],
  recordedLoads.map(({ name, requests, ttft, e2e }) => [
    `\`${name}\``,
    `${requests}`,
    plain(ttft),
    plain(e2e),
  ]),
)}

## Speculation

Speedup of EAGLE with three draft tokens over plain decoding, Llama-3.1-8B on H100 (estimated profile), 256 tokens in
and out. Acceptance is measured by position (SpecDecode-Bench); the measured speedups are published ones of EAGLE.

${table(
  ['batch', 'simulated', 'measured', 'error'],
  speculation.map(({ batch, simulated, measured }) => [
    `${batch}`,
    `${simulated.toFixed(2)}x`,
    measured === null ? '-' : `${measured.toFixed(2)}x`,
    measured === null ? '-' : signed(100 * (simulated / measured - 1)),
  ]),
)}

${points === null ? '' : `${pointsReport(points)}\n`}## Schedules beside vLLM

[schedules.md](schedules.md) compares the engine's schedules with those of vLLM's own scheduler, load by load.
`;
}

function signed(percent: number): string {
  return `${percent < 0 ? '-' : '+'}${plain(Math.abs(percent))}`;
}

function plain(percent: number): string {
  return `${percent.toFixed(1)} %`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function median(values: readonly number[]): number {
  const sorted = values.map(Math.abs).sort((a, b) => a - b);
  return (sorted[Math.floor((sorted.length - 1) / 2)] + sorted[Math.ceil((sorted.length - 1) / 2)]) / 2;
}
