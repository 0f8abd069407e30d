// Simulated requests per second beside NVIDIA's replay (`dynamo_replay.py` names its packages), on the same traces, with the
// same KV blocks, sequence cap and token budget, in turns: the traces of `--data FOLDER` (docs/reference-data.md).
// Reading the trace is not counted. The two have timing models of their own; their latencies are not compared.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findReferenceFiles, REFERENCE_DATA, readTrace } from '@servegym/operators/traces';
import { findProfile } from '@servegym/profiles';
import { scaleRate, simulateTrace, type Trace } from '@servegym/simulator';

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    python: { type: 'string', default: 'python3' },
    profile: { type: 'string', default: 'h200-141gb-llama-3-8b' },
    rounds: { type: 'string', default: '5' },
  },
});
if (values.data === undefined) throw new Error('expected --data FOLDER with the reference data, got none');

const BLOCK_TOKENS = 16;
const HASHED_TOKENS = 512;
const MAX_NUM_SEQS = 256;
const MAX_NUM_BATCHED_TOKENS = 2048;
const KV_BLOCKS = 65_536;

interface Scenario {
  readonly name: string;
  readonly trace: Trace;
  /** Trace in Mooncake's form, and the factor on its rate. */
  readonly file: string;
  readonly rate: number;
  readonly ours: Run[];
  readonly theirs: Run[];
}

interface Run {
  readonly wallS: number;
  readonly cpuS: number;
  readonly completed: number;
  readonly cached: number;
}

const folder = mkdtempSync(join(tmpdir(), 'beside-replay-'));
try {
  const profile = findProfile(values.profile);
  const [azureFile] = findReferenceFiles(values.data, [REFERENCE_DATA.azureConversation]);
  const mooncakeFile = join(values.data, 'traces/mooncake-conversation.jsonl');
  const azure = (await readTrace(azureFile)).trace;
  const mooncake = (await readTrace(mooncakeFile)).trace;
  const azureAsMooncake = join(folder, 'azure.jsonl');
  writeFileSync(azureAsMooncake, mooncakeLines(azure));
  const scenario = (name: string, trace: Trace, file: string, rate: number): Scenario => ({
    ...{ name, trace, file, rate, ours: [], theirs: [] },
  });
  const scenarios = [
    scenario('Azure conversation', azure, azureAsMooncake, 1),
    scenario('Mooncake conversation', mooncake, mooncakeFile, 1),
    scenario('Mooncake conversation, a fifth of the rate', scaleRate(mooncake, 0.2), mooncakeFile, 0.2),
  ];
  // The first round warms up the compiler.
  for (let round = 0; round <= Number(values.rounds); round++) {
    for (const { trace, ours } of scenarios) {
      const cpu = process.cpuUsage();
      const started = performance.now();
      const { counters } = simulateTrace(
        { ...trace, ...(trace.prefixBlocks && { prefixBlocks: { ...trace.prefixBlocks } }) },
        {
          ...{ profile, kvBlocks: KV_BLOCKS },
          ...{ maxNumSeqs: MAX_NUM_SEQS, maxNumBatchedTokens: MAX_NUM_BATCHED_TOKENS },
        },
      );
      const wallS = (performance.now() - started) / 1000;
      const { user, system } = process.cpuUsage(cpu);
      const cached = counters.cachedTokens / (counters.cachedTokens + counters.prefillTokens);
      const run = { wallS, cpuS: (user + system) / 1e6, completed: counters.completed, cached };
      if (round > 0) ours.push(run);
    }
    if (round > 0) replay(scenarios);
  }
  console.log(
    '| trace | requests | ours, requests/s | of NVIDIA | ratio | by CPU time | cached, ours | NVIDIA |',
  );
  console.log('|---|---:|---:|---:|---:|---:|---:|---:|');
  for (const { name, trace, ours, theirs } of scenarios) {
    const requests = trace.arrivalMs.length;
    const rate = (runs: readonly Run[], of: 'wallS' | 'cpuS') =>
      requests / median(runs.map((run) => run[of]));
    const cells = [
      name,
      whole(requests),
      whole(rate(ours, 'wallS')),
      whole(rate(theirs, 'wallS')),
      whole(rate(ours, 'wallS') / rate(theirs, 'wallS')),
      whole(rate(ours, 'cpuS') / rate(theirs, 'cpuS')),
      percent(ours[0].cached),
      percent(theirs[0].cached),
    ];
    console.log(`| ${cells.join(' | ')} |`);
    for (const { completed } of [...ours, ...theirs]) {
      if (completed !== requests) console.error(`${name}: ${completed} of ${requests} requests completed`);
    }
  }
} finally {
  rmSync(folder, { recursive: true });
}

function replay(scenarios: readonly Scenario[]): void {
  const engine = {
    ...{ block_size: BLOCK_TOKENS, num_gpu_blocks: KV_BLOCKS, enable_prefix_caching: true },
    ...{ max_num_seqs: MAX_NUM_SEQS, max_num_batched_tokens: MAX_NUM_BATCHED_TOKENS },
  };
  const tasks = scenarios.map(({ name, file, rate }) => JSON.stringify({ name, file, rate, engine }));
  const script = join(import.meta.dirname, 'dynamo_replay.py');
  const { stdout, stderr, status } = spawnSync(values.python, [script], { input: tasks.join('\n') });
  if (status !== 0) throw new Error(`expected ${values.python} to replay with dynamo, got ${stderr}`);
  for (const line of stdout.toString().trim().split('\n')) {
    const { name, ...run } = JSON.parse(line);
    scenarios
      .find((scenario) => scenario.name === name)!
      .theirs.push({ wallS: run.wall_s, cpuS: run.cpu_s, completed: run.completed, cached: run.cached });
  }
}

/** A trace in Mooncake's form, in which no prompt shares a block with another. */
function mooncakeLines({ arrivalMs, inputTokens, outputTokens }: Trace): string {
  let next = 0;
  const lines = Array.from(arrivalMs, (at, i) => {
    const hash_ids = Array.from({ length: Math.ceil(inputTokens[i] / HASHED_TOKENS) }, () => next++);
    const row = { timestamp: Math.round(at), input_length: inputTokens[i], output_length: outputTokens[i] };
    return JSON.stringify({ ...row, hash_ids });
  });
  return lines.join('\n');
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1];
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
