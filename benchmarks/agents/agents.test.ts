import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { AGENT_JOB_KINDS, AGENTS, evaluate, evaluatePolicy, findPolicy } from '@servegym/agents';
import { firstSeeds, llmserve, SEED_SPLITS } from '@servegym/environments';
import { LocalJobs } from '@servegym/jobs';
import agents from '../cases/agents.ts';
import { runCase } from '../harness.ts';
import { type AgentBenchmark, type AgentCell, agentsPage } from './agents-page.ts';

const docs = join(import.meta.dirname, '..', '..', 'docs');
const benchmark = JSON.parse(readFileSync(join(docs, 'benchmarks.json'), 'utf8')) as AgentBenchmark;

/** The least mean score of PPO over its training runs, by task. */
const LEAST_PPO = { static_workload: 0.8, bursty_workload: 0.58, adversarial_multitenant: 0.6 };
const RULES = ['random', 'default', 'heuristic', 'static-tuned', 'rule'];
const LEARNED = ['ppo', 'distilled'];
const ALL = [...RULES, ...LEARNED, 'mpc', 'mpc-unshifted', 'oracle'];
/** Agents that are quick to play and need no training. */
const QUICK = ['default', 'heuristic', 'static-tuned'];

describe('the benchmark of the agents', () => {
  const run = async (...args: string[]) => {
    const lines: string[] = [];
    const rows = await runCase(agents, args, (line) => lines.push(line));
    return { rows, text: lines.join('\n') };
  };

  it('trains, plays as the grader grades, reports, and goes on with what it has', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'servegym-bench-agents-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const page = join(folder, 'page.md');
    const told = t.mock.method(console, 'error', () => {});
    const args = [
      ...['--agents', 'default,heuristic,ppo', '--task', 'static_workload', '--json'],
      ...['--episodes', '3', '--training-seeds', '2', '--steps', '2048', '--shifted-episodes', '1'],
      ...['--threads', '2', '--cache', folder, '--out', page],
    ];
    const { rows, text } = await run(...args);
    assert.equal(told.mock.callCount(), 2);
    assert.equal(rows.length, 3 * (1 + llmserve.shifts.length));
    assert.match(readFileSync(page, 'utf8'), /^# Benchmarks of the agents\n/);
    const { cells } = JSON.parse(readFileSync(join(folder, 'page.json'), 'utf8')) as AgentBenchmark;
    assert.deepEqual(
      cells.slice(0, 3).map((cell) => [cell.agent, cell.split, cell.runs.length, cell.episodes]),
      [
        ['default', 'test', 1, 3],
        ['heuristic', 'test', 1, 3],
        ['ppo', 'test', 2, 3],
      ],
    );
    assert.ok(Math.abs(cells[0]!.score.mean - 0.2) < 1e-9);
    for (const [split, count] of [
      ['test', 3],
      ['rate_1.5', 1],
    ] as const) {
      const { tasks } = await evaluatePolicy(
        AGENTS.llmserve.playable({ scenario: split === 'test' ? {} : { shift: split } }),
        AGENTS.llmserve.createPolicy('heuristic'),
        { taskIds: ['static_workload'], seeds: firstSeeds('test', count) },
      );
      const cell = cells.find((each) => each.agent === 'heuristic' && each.split === split)!;
      assert.deepEqual(cell.gains, tasks[0]!.gains);
      assert.deepEqual(
        cell.firstScores,
        tasks[0]!.episodes.map(({ score }) => score),
      );
    }

    assert.equal((await run(...args)).text, text);
    assert.equal(told.mock.callCount(), 2);
  });

  it('says which agents there are before it plays', async () => {
    await assert.rejects(
      run('--agents', 'default,nobody', '--cache', '/nowhere'),
      /Expected a policy named one of random, .*, got "nobody"/,
    );
    assert.ok(!existsSync('/nowhere'));
  });
});

describe('agentsPage', () => {
  const cell = (agent: string, split: string, mean: number, runs = [mean]): AgentCell => ({
    ...{ agent, split, taskId: 'bursty_workload', episodes: 100, runs, firstScores: [mean] },
    ...{ score: { mean, iqm: mean + 0.01, ci95: [mean - 0.1, mean + 0.1] }, gains: null },
  });
  const made: AgentBenchmark = {
    ...{ environment: 'llmserve', version: '1.2.3', plan: benchmark.plan },
    cells: [
      cell('default', 'test', 0.2),
      cell('ppo', 'test', 0.7, [0.6, 0.8]),
      cell('default', 'rate_1.5', 0.2),
      { ...cell('ppo', 'rate_1.5', 0.55, [0.5, 0.6]), episodes: 50 },
    ],
  };
  const page = agentsPage(made);

  it('has the scores of each split', () => {
    assert.match(
      page,
      /## Test traces\n\n\| agent \| traces \| bursty_workload \|\n\| --- \| --- \| --- \|\n\| `default` \| 100 \| 0\.210 \(0\.100 \.\. 0\.300\) \|/,
    );
    assert.match(
      page,
      /## Shifted: `rate_1\.5`\n\n.*\n.*\n.*\n\| `ppo` \| 50 \| 0\.560 \(0\.450 \.\. 0\.650\) \|/,
    );
  });

  it('has the gain of the mean return, the worst tenth and the share below the default', () => {
    const gains = {
      gain: { mean: 0.5, ci95: [0.4, 0.6] as const },
      ...{ worst10: -1.25, belowDefault: 0.19, estimated: false },
    };
    assert.match(
      agentsPage({ ...made, cells: [{ ...cell('ppo', 'test', 0.7), gains }] }),
      /\| `ppo` \| bursty_workload \| 0\.500 \(0\.400 \.\. 0\.600\) \| -1\.250 \| 19 % \|/,
    );
  });

  it('states what is lost under a shift, and how training runs differ', () => {
    assert.match(page, /\| `ppo` \| 0\.700 \| -0\.150 \|/);
    assert.match(page, /\| `ppo` \| bursty_workload \| 2 \| 0\.700 \| 0\.600 \| 0\.800 \|/);
  });
});

describe('data: docs/benchmarks.md', () => {
  it('says what was measured', () => {
    assert.equal(readFileSync(join(docs, 'benchmarks.md'), 'utf8'), agentsPage(benchmark));
  });

  it('was measured on this version of llmserve, or says what differs', () => {
    assert.equal(benchmark.environment, llmserve.id);
    assert.ok(
      benchmark.version === llmserve.version || benchmark.note?.startsWith(llmserve.version),
      'measure anew: npx node benchmarks/run.ts agents --out docs/benchmarks.md',
    );
  });

  it('covers all agents on a hundred held-out traces, and ten training runs of those that learn', () => {
    const { plan, cells } = benchmark;
    const taskIds = llmserve.tasks.shippedIds;
    assert.deepEqual(plan.agents.split(',').sort(), [...ALL].sort());
    assert.ok(plan.episodes >= 100 && plan['planning-episodes'] >= 100 && plan['shifted-episodes'] >= 100);
    for (const { agent, split, runs, episodes } of cells) {
      if (split === 'test') assert.ok(episodes >= 100, `${agent}: ${episodes}`);
      if (LEARNED.includes(agent)) assert.ok(runs.length >= 10, `${agent}: ${runs.length}`);
    }
    assert.equal(cells.length, ALL.length * taskIds.length * (1 + llmserve.shifts.length));
  });

  for (const [taskId, least] of Object.entries(LEAST_PPO)) {
    it(`shows what PPO learns beside rules and constants (${taskId})`, () => {
      const cellOf = (agent: string) =>
        benchmark.cells.find(
          (cell) => cell.agent === agent && cell.taskId === taskId && cell.split === 'test',
        )!;
      const { runs, score } = cellOf('ppo');
      const [low] = score.ci95;
      assert.ok(runs.reduce((sum, mean) => sum + mean, 0) / runs.length >= least);
      assert.ok(low > cellOf('heuristic').score.ci95[1]);
      if (taskId === 'static_workload') return;
      // The best constant scores 0.50 where adapting has room, and above it scores are in proportion to the gain.
      assert.ok(low > 0.5);
      const gainOf = (agent: string) => cellOf(agent).score.mean - 0.5;
      assert.ok(Math.max(gainOf('ppo'), gainOf('distilled')) >= 0.9 * gainOf('mpc'));
    });
  }
});

describe('the scores of docs/benchmarks.md', () => {
  it('come out again', async (t) => {
    const jobs = new LocalJobs({ kinds: AGENT_JOB_KINDS, threads: 1 });
    t.after(() => jobs.close());
    const cells = benchmark.cells.filter(({ agent, split }) => QUICK.includes(agent) && split === 'test');
    assert.ok(cells.length > 0);
    for (const { agent, taskId, firstScores } of cells) {
      const seeds = firstScores.map((_, i) => SEED_SPLITS.test.first + i);
      const policy = findPolicy('llmserve', agent);
      const { tasks } = await evaluate({ environment: 'llmserve', policy, taskIds: [taskId], seeds }, jobs);
      for (const [i, { score, seed }] of tasks[0]!.episodes.entries())
        assert.ok(Math.abs(score - firstScores[i]!) < 1e-9, `${agent} on ${taskId} ${seed}: ${score}`);
    }
  });
});
