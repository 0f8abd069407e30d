import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readTrace } from '@servegym/operators/traces';
import { RandomStream, scaleRate, type Trace } from '@servegym/simulator';
import { benchmark, text } from '../harness.ts';
import { type SpeedScenario, simulationSpeed } from './simulate-trace.ts';

export default benchmark({
  what: 'Simulated requests a second on long prompts of which most is cached, in one process on one core: the traces of `--data FOLDER` (docs/reference-data.md), or drawn stand-ins. The scenarios take turns; the median and the best of the runs, and the rate by processor time, which says more on a machine that others use too.',
  options: { data: text, profile: 'h200-141gb-llama-3-8b', runs: 7 },
  async *run({ data, ...plan }) {
    yield* simulationSpeed(data === undefined ? drawnScenarios() : await recordedScenarios(data), plan);
  },
});

async function recordedScenarios(folder: string): Promise<SpeedScenario[]> {
  const read = async (path: string) => {
    const file = join(folder, path);
    if (!existsSync(file)) throw new Error(`${file} is missing: see docs/reference-data.md`);
    return (await readTrace(file)).trace;
  };
  const mooncake = await read('traces/mooncake-conversation.jsonl');
  return [
    { name: 'Mooncake conversation, as recorded', trace: mooncake },
    { name: 'Mooncake conversation, a fifth of the rate', trace: scaleRate(mooncake, 0.2) },
    { name: 'sessions of Claude Code', trace: await read('traces/claude-code-sessions') },
    { name: 'RAGPulse', trace: await read('traces/ragpulse') },
  ];
}

function drawnScenarios(): SpeedScenario[] {
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
