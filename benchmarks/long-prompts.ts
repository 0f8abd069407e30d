// Simulated requests per second of wall time on long prompts of which most is cached, in one process on one core: the
// traces of `--data FOLDER` (docs/reference-data.md), or drawn stand-ins. The scenarios take turns; quoted are the median
// and the best of the runs, and CPU time, which says more than wall time on a machine that others use too.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readTrace } from '@servegym/operators/traces';
import { findProfile } from '@servegym/profiles';
import { RandomStream, scaleRate, simulateTrace, type Trace } from '@servegym/simulator';

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    profile: { type: 'string', default: 'h200-141gb-llama-3-8b' },
    runs: { type: 'string', default: '7' },
    json: { type: 'boolean', default: false },
  },
});

interface Scenario {
  readonly name: string;
  readonly trace: Trace;
}

const profile = findProfile(values.profile);
const scenarios = values.data === undefined ? drawnScenarios() : await recordedScenarios(values.data);
const results = scenarios.map(({ name, trace }) => ({
  name,
  trace,
  wallMs: [] as number[],
  cpuMs: [] as number[],
  cached: 0,
}));
for (let run = 0; run <= Number(values.runs); run++) {
  for (const result of results) {
    // A copy, so that nothing is known of the hashes from the run before.
    const trace = { ...result.trace, prefixBlocks: { ...result.trace.prefixBlocks! } };
    const cpu = process.cpuUsage();
    const started = performance.now();
    const { counters } = simulateTrace(trace, { profile });
    const wallMs = performance.now() - started;
    const { user, system } = process.cpuUsage(cpu);
    result.cached = counters.cachedTokens / (counters.cachedTokens + counters.prefillTokens);
    // The first round warms up the compiler.
    if (run === 0) continue;
    result.wallMs.push(wallMs);
    result.cpuMs.push((user + system) / 1000);
  }
}

const rows = results.map(({ name, trace, wallMs, cpuMs, cached }) => {
  const sorted = wallMs.sort((a, b) => a - b);
  const requests = trace.arrivalMs.length;
  const [medianMs, bestMs] = [sorted[sorted.length >> 1], sorted[0]];
  return {
    scenario: name,
    requests,
    wall_s: Number((medianMs / 1000).toFixed(4)),
    requests_per_wall_s: Math.round((requests / medianMs) * 1000),
    best_requests_per_wall_s: Math.round((requests / bestMs) * 1000),
    requests_per_cpu_s: Math.round((requests / cpuMs.sort((a, b) => a - b)[cpuMs.length >> 1]) * 1000),
    cached_percent: Number((100 * cached).toFixed(2)),
  };
});
if (values.json) console.log(JSON.stringify(rows));
else console.table(rows);

async function recordedScenarios(folder: string): Promise<Scenario[]> {
  const read = async (path: string) => {
    const file = join(folder, path);
    if (existsSync(file)) return (await readTrace(file)).trace;
    console.error(`${file} is missing: see docs/reference-data.md`);
    process.exit(2);
  };
  const mooncake = await read('traces/mooncake-conversation.jsonl');
  return [
    { name: 'Mooncake conversation, as recorded', trace: mooncake },
    { name: 'Mooncake conversation, a fifth of the rate', trace: scaleRate(mooncake, 0.2) },
    { name: 'sessions of Claude Code', trace: await read('traces/claude-code-sessions') },
    { name: 'RAGPulse', trace: await read('traces/ragpulse') },
  ];
}

function drawnScenarios(): Scenario[] {
  const chats = drawnConversations({
    conversations: 4000,
    turns: 3,
    startTokens: 6000,
    turnTokens: 1500,
    gapMs: 900,
  });
  return [
    { name: 'drawn chats', trace: chats },
    { name: 'drawn chats, a fifth of the rate', trace: scaleRate(chats, 0.2) },
    {
      name: 'drawn agents',
      trace: drawnConversations({
        conversations: 60,
        turns: 38,
        startTokens: 20_000,
        turnTokens: 2500,
        gapMs: 0,
      }),
    },
  ];
}

/** Conversations whose prompts grow turn by turn behind a common system prompt, in blocks of 64 tokens. */
function drawnConversations(size: {
  readonly conversations: number;
  readonly turns: number;
  readonly startTokens: number;
  readonly turnTokens: number;
  readonly gapMs: number;
}): Trace {
  const blockTokens = 64;
  const systemBlocks = 32;
  const random = new RandomStream(0, 'conversations');
  const rows: {
    atMs: number;
    input: number;
    output: number;
    previous: number;
    thinkMs: number;
    ids: number[];
  }[] = [];
  let nextId = systemBlocks;
  let atMs = 0;
  for (let c = 0; c < size.conversations; c++) {
    const ids = Array.from({ length: systemBlocks }, (_, i) => i);
    let tokens = Math.round(random.exponential(size.startTokens)) + systemBlocks * blockTokens;
    const turns = random.integer(1, 2 * size.turns - 1);
    for (let turn = 0; turn < turns; turn++) {
      while (ids.length < Math.floor(tokens / blockTokens)) ids.push(nextId++);
      const output = random.integer(50, 600);
      const thinkMs = turn === 0 ? 0 : random.exponential(20_000);
      const previous = turn === 0 ? -1 : rows.length - 1;
      rows.push({ atMs, input: tokens, output, previous, thinkMs, ids: ids.slice() });
      tokens += output + Math.round(random.exponential(size.turnTokens));
    }
    atMs += random.exponential(size.gapMs);
  }
  const offsets = new Int32Array(rows.length + 1);
  for (const [i, { ids }] of rows.entries()) offsets[i + 1] = offsets[i] + ids.length;
  return {
    source: 'drawn conversations',
    arrivalMs: Float64Array.from(rows, (row) => row.atMs),
    inputTokens: Int32Array.from(rows, (row) => row.input),
    outputTokens: Int32Array.from(rows, (row) => row.output),
    prefixBlocks: { blockTokens, ids: Float64Array.from(rows.flatMap((row) => row.ids)), offsets },
    followUps: {
      previous: Int32Array.from(rows, (row) => row.previous),
      thinkMs: Float64Array.from(rows, (row) => row.thinkMs),
    },
  };
}
