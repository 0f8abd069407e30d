import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { agentBenchmarkPage } from './agent-benchmark-report.ts';
import type { AgentBenchmark, BenchmarkCell } from './benchmark-agents.ts';

const cell = (agent: string, split: BenchmarkCell['split'], mean: number, runs = [mean]): BenchmarkCell => ({
  ...{ agent, split, taskId: 'bursty_workload', episodes: 100, runs, firstScores: [mean] },
  score: { mean, iqm: mean + 0.01, ci95: [mean - 0.1, mean + 0.1] },
});
const benchmark: AgentBenchmark = {
  environment: 'llmserve',
  version: '1.2.3',
  plan: {
    ...{ agents: ['default', 'ppo'], taskIds: ['bursty_workload'], episodes: 100, shiftedEpisodes: 50 },
    ...{ planningEpisodes: 20, planningShiftedEpisodes: 5 },
    ...{ trainingSeeds: 2, steps: 120_000, teacher: 'mpc', lessons: 48, fineTuningSteps: 40_960 },
  },
  cells: [
    cell('default', 'test', 0.2),
    cell('ppo', 'test', 0.7, [0.6, 0.8]),
    cell('default', 'rate_1.5', 0.2),
    cell('ppo', 'rate_1.5', 0.55, [0.5, 0.6]),
  ],
};

describe('agentBenchmarkPage', () => {
  const page = agentBenchmarkPage(benchmark);

  it('has the scores of each split', () => {
    assert.match(
      page,
      /## Test traces\n\n\| agent \| traces \| bursty_workload \|\n\|---\|---\|---\|\n\| `default` \| 100 \| 0\.210 \(0\.100 \.\. 0\.300\) \|/,
    );
    assert.match(
      page,
      /## Shifted: `rate_1\.5`\n\n.*\n.*\n.*\n\| `ppo` \| 50 \| 0\.560 \(0\.450 \.\. 0\.650\) \|/,
    );
  });

  it('has the gain of the mean return, the worst tenth and the share below the default', () => {
    const gains = {
      gain: { mean: 0.5, ci95: [0.4, 0.6] as const },
      worst10: -1.25,
      belowDefault: 0.19,
      estimated: false,
    };
    const measured = { ...benchmark, cells: [{ ...cell('ppo', 'test', 0.7), gains }] };
    assert.match(
      agentBenchmarkPage(measured),
      /\| `ppo` \| bursty_workload \| 0\.500 \(0\.400 \.\. 0\.600\) \| -1\.250 \| 19 % \|/,
    );
  });

  it('states what is lost under a shift, and how training runs differ', () => {
    assert.match(page, /\| `ppo` \| 0\.700 \| -0\.150 \|/);
    assert.match(page, /\| `ppo` \| bursty_workload \| 2 \| 0\.700 \| 0\.600 \| 0\.800 \|/);
  });
});
