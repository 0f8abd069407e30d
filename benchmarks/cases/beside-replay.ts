import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findReferenceFiles, REFERENCE_DATA, readTrace } from '@servegym/operators/traces';
import { findProfile } from '@servegym/profiles';
import { scaleRate, simulateTrace, type Trace } from '@servegym/simulator';
import { benchmark, median, required, timed } from '../harness.ts';

const BLOCK_TOKENS = 16;
const HASHED_TOKENS = 512;
const MAX_NUM_SEQS = 256;
const MAX_NUM_BATCHED_TOKENS = 2048;
const KV_BLOCKS = 65_536;

interface Run {
  readonly wallS: number;
  readonly cpuS: number;
  readonly completed: number;
  readonly cached: number;
}

interface Scenario {
  readonly name: string;
  readonly trace: Trace;
  /** Trace in Mooncake's form, the tokens of its blocks, and the factor on its rate. */
  readonly file: string;
  readonly block: number;
  readonly rate: number;
  readonly ours: Run[];
  readonly theirs: Run[];
}

export default benchmark({
  what: "Simulated requests a second beside NVIDIA's replay (`dynamo_replay.py` names its packages), on the same traces of `--data FOLDER` (docs/reference-data.md), with the same KV blocks, sequence cap and token budget, in turns. V8 compiles the engine while it runs, so each trace is first served as often as `--warm` says; the ratio of the very first time is told too. Reading the trace is not counted. The two have timing models of their own; their latencies are not compared.",
  options: { data: required, python: 'python3', profile: 'h200-141gb-llama-3-8b', rounds: 5, warm: 10 },
  async *run({ data, python, profile: profileName, rounds, warm }) {
    const folder = mkdtempSync(join(tmpdir(), 'beside-replay-'));
    try {
      const profile = findProfile(profileName);
      const mooncakeFile = join(data, 'traces/mooncake-conversation.jsonl');
      const [azureFile] = findReferenceFiles(data, [REFERENCE_DATA.azureConversation]);
      const azure = (await readTrace(azureFile)).trace;
      const mooncake = (await readTrace(mooncakeFile)).trace;
      const sessions = lines((await readTrace(join(data, 'traces/claude-code-sessions'))).trace);
      const scenario = (name: string, trace: Trace, file: string, rate: number): Scenario => ({
        ...{ name, trace, file, block: trace.prefixBlocks?.blockTokens ?? HASHED_TOKENS, rate },
        ...{ ours: [], theirs: [] },
      });
      const written = (name: string, trace: Trace) => {
        const file = join(folder, `${name}.jsonl`);
        writeFileSync(file, mooncakeLines(trace));
        return scenario(name, trace, file, 1);
      };
      const scenarios = [
        written('Azure conversation', azure),
        scenario('Mooncake conversation', mooncake, mooncakeFile, 1),
        scenario('Mooncake conversation, a fifth of the rate', scaleRate(mooncake, 0.2), mooncakeFile, 0.2),
        written('Claude Code sessions', sessions),
      ];
      const settings = {
        ...{ kvBlocks: KV_BLOCKS, maxNumSeqs: MAX_NUM_SEQS, maxNumBatchedTokens: MAX_NUM_BATCHED_TOKENS },
      };
      for (let round = -warm; round < rounds; round++) {
        for (const { trace, ours } of scenarios) {
          const fresh = { ...trace, prefixBlocks: trace.prefixBlocks && { ...trace.prefixBlocks } };
          const { result, wallS, cpuS } = await timed(() => simulateTrace(fresh, { profile, ...settings }));
          const { completed, cachedTokens, prefillTokens } = result.counters;
          const cached = cachedTokens / (cachedTokens + prefillTokens);
          ours.push({ wallS, cpuS, completed, cached });
        }
        if (round >= 0) replay(python, scenarios);
      }
      for (const { name, trace, ours: all, theirs } of scenarios) {
        const ours = all.slice(warm);
        const requests = trace.arrivalMs.length;
        const rate = (runs: readonly Run[], of: 'wallS' | 'cpuS') =>
          requests / median(runs.map((run) => run[of]));
        yield {
          trace: name,
          requests,
          'ours, requests/s': Math.round(rate(ours, 'wallS')),
          'of NVIDIA': Math.round(rate(theirs, 'wallS')),
          ratio: rate(ours, 'wallS') / rate(theirs, 'wallS'),
          'by CPU time': rate(ours, 'cpuS') / rate(theirs, 'cpuS'),
          'the first time': rate(all.slice(0, 1), 'cpuS') / rate(theirs, 'cpuS'),
          'cached %, ours': 100 * ours[0].cached,
          'cached %, NVIDIA': 100 * theirs[0].cached,
        };
        for (const { completed } of [...ours, ...theirs])
          if (completed !== requests) yield `${name}: ${completed} of ${requests} requests completed`;
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
});

function replay(python: string, scenarios: readonly Scenario[]): void {
  const engine = {
    ...{ block_size: BLOCK_TOKENS, num_gpu_blocks: KV_BLOCKS, enable_prefix_caching: true },
    ...{ max_num_seqs: MAX_NUM_SEQS, max_num_batched_tokens: MAX_NUM_BATCHED_TOKENS },
  };
  const tasks = scenarios.map(({ name, file, block, rate }) =>
    JSON.stringify({ name, file, block, rate, engine }),
  );
  const script = join(import.meta.dirname, '../dynamo_replay.py');
  const { stdout, stderr, status } = spawnSync(python, [script], { input: tasks.join('\n') });
  if (status !== 0) throw new Error(`expected ${python} to replay with dynamo, got ${stderr}`);
  for (const line of stdout.toString().trim().split('\n')) {
    const { name, ...run } = JSON.parse(line);
    scenarios
      .find((scenario) => scenario.name === name)!
      .theirs.push({ wallS: run.wall_s, cpuS: run.cpu_s, completed: run.completed, cached: run.cached });
  }
}

/** The same with one follow-up for each answer at most, as the replay has them: others arrive as recorded. */
function lines(trace: Trace): Trace {
  const followed = new Set<number>();
  const previous = trace.followUps!.previous.map((answered) => {
    if (answered < 0 || followed.has(answered)) return -1;
    followed.add(answered);
    return answered;
  });
  return { ...trace, followUps: { ...trace.followUps!, previous } };
}

/** A trace in Mooncake's form. Prompts without known blocks share none. */
function mooncakeLines({ arrivalMs, inputTokens, outputTokens, prefixBlocks, followUps }: Trace): string {
  const sessions: number[] = [];
  let next = prefixBlocks === undefined ? 0 : 1 + prefixBlocks.ids.reduce((a, b) => Math.max(a, b), 0);
  const rows = Array.from(arrivalMs, (at, i) => {
    const known = prefixBlocks?.ids.subarray(prefixBlocks.offsets[i], prefixBlocks.offsets[i + 1]) ?? [];
    const blocks = Math.ceil(inputTokens[i] / (prefixBlocks?.blockTokens ?? HASHED_TOKENS));
    const hash_ids = Array.from({ length: blocks }, (_, block) => known[block] ?? next++);
    const row = { input_length: inputTokens[i], output_length: outputTokens[i], hash_ids };
    if (followUps === undefined) return { timestamp: Math.round(at), ...row };
    const previous = followUps.previous[i];
    sessions[i] = previous < 0 ? i : sessions[previous];
    const when = previous < 0 ? { timestamp: Math.round(at) } : { delay: followUps.thinkMs[i] };
    return { session_id: String(sessions[i]), ...when, ...row };
  });
  return rows.map((row) => JSON.stringify(row)).join('\n');
}
