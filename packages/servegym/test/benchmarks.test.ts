import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { llmserve, regretScore, roomToAdapt, SEED_SPLITS } from '@servegym/environments';
import type { AgentBenchmark } from '../src/agent-benchmark/benchmark-agents.ts';
import { policyReturns } from '../src/agent-benchmark/policy-returns.ts';
import { trafficAnchors } from '../src/agent-benchmark/traffic-anchors.ts';
import { agentBenchmarkPage } from '../src/reports/agent-benchmark-report.ts';

const docs = join(import.meta.dirname, '..', '..', '..', 'docs');
const benchmark = JSON.parse(readFileSync(join(docs, 'benchmarks.json'), 'utf8')) as AgentBenchmark;

/** Agents that are quick to play and need no training. */
const QUICK = ['default', 'heuristic', 'static-tuned'];

describe('docs/benchmarks.md', () => {
  it('says what was measured', () => {
    assert.equal(readFileSync(join(docs, 'benchmarks.md'), 'utf8'), agentBenchmarkPage(benchmark));
  });

  it('was measured on this version of llmserve', () => {
    assert.deepEqual(
      [benchmark.environment, benchmark.version],
      [llmserve.id, llmserve.version],
      'measure anew: servegym bench agents --out docs/benchmarks.md',
    );
  });

  it('has scores that come out again', async () => {
    const cells = benchmark.cells.filter(({ agent, split }) => QUICK.includes(agent) && split === 'test');
    assert.ok(cells.length > 0);
    for (const { agent, taskId, firstScores } of cells) {
      const seeds = firstScores.map((_, i) => SEED_SPLITS.test.first + i);
      const traffic = { taskId, shift: null, seeds };
      const anchors = trafficAnchors(traffic);
      for (const [i, total] of (await policyReturns(agent, traffic)).entries()) {
        const score = regretScore(total, anchors[i]!, roomToAdapt(taskId));
        assert.ok(Math.abs(score - firstScores[i]!) < 1e-9, `${agent} on ${taskId} ${seeds[i]}: ${score}`);
      }
    }
  });
});
