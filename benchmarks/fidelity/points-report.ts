import { table } from '../harness.ts';
import type { PointErrors, PointGroup, PointRow } from './fidelity.ts';
import { pointGroups } from './operating-points.ts';

const ENGINES = { vllm: 'vLLM', sglang: 'SGLang' } as const;

/** The section on operating points, in Markdown. */
export function pointsReport(rows: readonly PointRow[]): string {
  return `## Operating points

Mean TTFT and TPOT of ${rows.length} public operating points (\`systems/silicon_sample.csv\` of NVIDIA's aiconfigurator-core 0.12, Apache-2.0). Ten
times as many requests are sent as are in flight, in Qwen3-32B on SGLang as many. Lengths are drawn from 0.8 to 1.0 of the nominal ones. Every
profile is made from kernel tables, as \`servegym profile make\` does. Held out, and never looked at: Qwen3-32B and
Llama-3.1-70B on vLLM, Kimi-K2.5, B300, GB200, GB300, prefill and decode apart. Errors are means without their signs,
medians with them (positive when the simulator says more).
\`benchmarks/fidelity/aiconfigurator_answers.py\` asks NVIDIA's estimator for the same points; "both": over the rows that both answer.

${Object.entries(ENGINES)
  .map(([engine, name]) => {
    const own = rows.filter(({ point }) => point.engine === engine);
    return own.length === 0 ? '' : `### ${name}\n\n${groupTable(pointGroups(own))}\n\n${failures(own)}`;
  })
  .filter((text) => text !== '')
  .join('\n\n')}

### What the error is made of

- **Disturbed points**, which count in "all" and have a line without them. Nine are of gpt-oss-120b at 512 in flight on
  H100, with vLLM 0.11.2 or no version. In all nine the tokens behind the first take 17 to 19 % of the time of a request, whatever
  lengths and GPUs, as if some 95 of the 512 were answered at a time. One, on two GPUs, has a TPOT of 5.6 ms,
  where reading the experts takes 9 ms by the tables. The public recipe sets no such limit, and the cause is not known. The others are 72 of
  DeepSeek in FP4 on SGLang of November 2025, with a TTFT of seconds. Their first burst waits for 15 to 80 s, whatever its
  size, as if kernels were compiled.
- **Load generators.** Points of "others" on vLLM come from one that goes through 100 prompts over and over, behind a warm-up, so
  that the prefix cache has most of them. Taking all prompts to be new nearly doubles the TPOT of Llama-3.1-8B.
- **Engine versions.** Kernel tables are of vLLM 0.24; points before 0.18 take the oldest there are (experts of 0.19), whose
  kernels for experts agree with 0.15 and 0.17. CPU work of a sequence without asynchronous scheduling (20 us) and the
  experts of 0.12, which are all read whatever the load, with 120 us a layer, were chosen on every second row of 0.12. MiniMax-M2.5
  normalises queries over all GPUs, which 0.18 does in one kernel; what 0.16 and the nightly of April 2026 take beyond that is
  not known.
- **Routing.** Few tokens read fewer experts when all ask for the same ones. Real routing lies between random choices, which
  fit MiniMax-M2.5, and the tables' power law, which fits gpt-oss: the middle is taken.
- **The front end.** TTFT grows with the prompt by about 7 us a token more than prefill does, whatever the tensor
  parallelism (\`requestOverheadPerTokenUs\`). The burst that starts a closed loop adds 5 ms for each request in it.
  Both are constants chosen on the open rows.
- **The KV pool.** Points that overflow it tell that B200 recipes keep KV in 8 bits. On vLLM 2 to 4.5 GiB a GPU go to neither
  weights nor KV; the comparison takes 3 GiB there and none on SGLang. Near the brink a small error of the pool is a large one of TTFT.
- **SGLang.** It prefills in iterations of their own and without CUDA graphs: 0.5 ms a layer, and 100 ms a request, chosen on the
  open rows. Token budgets, shares of the memory and how often it looks for new requests (on B200 every 10 iterations,
  every 30 from 16 in flight) are those of InferenceX's public recipes. Points of other sources have the defaults. A recipe may
  have changed since a point was measured: today's limit of 128 requests at once contradicts points with 256, and is left out.
  SGLang serves new prompts before it goes on with decodes, which makes clients move in step: TTFTs of Llama-3.1-8B and
  Qwen3-235B are longer than ours for it.
- **Speculation without a label.** DeepSeek in FP8 on eight B200 was measured on two servers under equal labels ("equal labels" above).
  The faster one needs 0.67 to 0.77 of the TPOT of the other at four requests, 0.82 to 0.91 at 64, and more TTFT. Speculation would
  look like this, and the public recipes have a variant with it. No prediction meets both. Qwen3.5 in FP8 on four B200 has such a
  TPOT wherever its experts are divided over the GPUs, and that of the sums where GPUs have whole experts.
- **Shared experts.** On Hopper, SGLang computes the one of DeepSeek-V3 and R1 as one more routed expert, and nothing is launched for it.
  On Blackwell, and for other models, it computes them beside the routed ones. Counting the latter takes Qwen3.5 on eight B200
  from 7 to 20 % of TPOT: what the sums lack differs from model to model, and the sum is kept.
- **Expert parallelism** is no cause: its rows are no worse than the others. No row on SGLang divides the attention into replicas, so that an
  all-reduce brings the experts' outputs together. vLLM gathers and scatters the tokens of replicas, which takes as long as one
  all-reduce. The tables' all-to-all kernels (DeepEP) are for recipes that none of the rows names.
- **State of linear layers.** Qwen3.5 keeps up to 0.2 GB for each sequence, which no profile has: the KV pool counts tokens.
- **Prefill of gpt-oss on H100 and H200** takes longer than the tables' sums: its TTFT at 8,192 tokens is too low at every
  concurrency, while its TPOT is right.
`;
}

function groupTable(groups: readonly PointGroup[]): string {
  const isBeside = groups.some(({ theirs }) => theirs !== null);
  return table(
    [
      ...['rows of', 'rows', 'failed', 'TPOT', 'TTFT', 'TPOT, median', 'TTFT, median'],
      ...(isBeside
        ? ['aiconfigurator failed', 'its TPOT', 'its TTFT', 'ours, both: TPOT', 'ours, both: TTFT']
        : []),
    ],
    groups.map(({ group, rows, ours, theirs, oursBeside }) => [
      group,
      `${rows}`,
      ...errorCells(ours),
      ...[ours.tpotMedian, ours.ttftMedian].map((error) => (error === null ? '-' : signed(error))),
      ...(theirs === null ? [] : errorCells(theirs)),
      ...(oursBeside === null ? [] : errorCells(oursBeside).slice(1)),
    ]),
  );
}

function errorCells({ failed, tpot, ttft }: PointErrors): string[] {
  return [`${failed}`, ...[tpot, ttft].map((error) => (error === null ? '-' : `${error.toFixed(1)} %`))];
}

function signed(percent: number): string {
  return `${percent < 0 ? '-' : '+'}${Math.abs(percent).toFixed(1)} %`;
}

/** Reasons of rows without an answer, the most frequent first. */
function failures(rows: readonly PointRow[]): string {
  const counts = new Map<string, number>();
  for (const { point, ours } of rows) {
    if (!('error' in ours)) continue;
    const reason = `${point.model.replace(/^.*\//, '')} on ${point.system}: ${shortened(ours.error)}`;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  if (counts.size === 0) return 'Every row has an answer.';
  const listed = [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([reason, count]) => `- ${count} rows: ${reason}`);
  return `Rows without an answer:\n\n${listed.join('\n')}`;
}

function shortened(reason: string): string {
  const text = reason.replace(/\(.*?\)/, '').replaceAll(/\s+/g, ' ');
  return text.length <= 160 ? text : `${text.slice(0, 160)} ...`;
}
