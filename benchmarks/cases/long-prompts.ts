import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readTrace } from '@servegym/operators/traces';
import { scaleRate } from '@servegym/simulator';
import { benchmark, required } from '../harness.ts';
import { type SpeedScenario, simulationSpeed } from './simulate-trace.ts';

export default benchmark({
  what: 'Simulated requests a second on long prompts of which most is cached, in one process on one core: the traces of `--data FOLDER` (docs/reference-data.md). The scenarios take turns; the median and the best of the runs, and the rate by processor time, which says more on a machine that others use too.',
  options: { data: required, profile: 'h200-141gb-llama-3-8b', runs: 7 },
  async *run({ data, ...plan }) {
    yield* simulationSpeed(await recordedScenarios(data), plan);
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
