import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { addServeTrace, firstSeeds, llmserve } from '@servegym/environments';
import { type JobEngine, LocalJobs } from '@servegym/jobs';
import { QueuedJobs, QueueWorker } from '@servegym/jobs/queue';
import { type RedisProcess, startRedis } from '../../../../maintenance/test-servers/redis.ts';
import { AGENT_JOB_KINDS } from '../agent-job-kinds.ts';
import { evaluate, evaluateScenarios, findPolicy, type PlayPlan, scenariosOf } from './evaluate.ts';
import type { Evaluation } from './evaluate-policy.ts';

const VERSION = 'a test';

/** A task of one's own, as a file would have it. */
function ownTask(arrivalsPerSecond: number) {
  const { id: _, ...task } = llmserve.tasks.shipped.static_workload;
  const phases = task.phases.map((phase) => ({ ...phase, arrivalsPerSecond }));
  return llmserve.tasks.parse({ ...task, id: 'own_task', windows: 6, phases }, 'own-task.json');
}

function addOwnTrace(): void {
  const count = 3000;
  const column = (valueAt: (i: number) => number) => Array.from({ length: count }, (_, i) => valueAt(i));
  addServeTrace('mine', {
    source: 'mine.csv',
    arrivalMs: Float64Array.from(column((i) => i * 250)),
    inputTokens: Int32Array.from(column((i) => 50 + ((i * 37) % 900))),
    outputTokens: Int32Array.from(column((i) => 10 + ((i * 13) % 150))),
  });
}

const plan: PlayPlan = {
  ...{ environment: 'llmserve', policy: findPolicy('llmserve', 'heuristic'), taskIds: ['own_task'] },
  seeds: firstSeeds('test', 3),
};

/** All that does not depend on how fast it was played. */
function played({ tasks, ...rest }: Evaluation) {
  return { ...rest, tasks: tasks.map(({ windowsPerSecond: _, ...task }) => task) };
}

describe('an evaluation with jobs', () => {
  it('tells how far it is while an episode is played, as planners take long for one', async () => {
    const jobs = new LocalJobs({ kinds: AGENT_JOB_KINDS, threads: 1 });
    try {
      const shares: number[] = [];
      const { windows } = llmserve.tasks.shipped.static_workload;
      await evaluate(
        {
          ...{ ...plan, policy: findPolicy('llmserve', 'mpc'), taskIds: ['static_workload'] },
          ...{ seeds: firstSeeds('test', 1), onProgress: (share) => shares.push(share) },
        },
        jobs,
      );
      assert.deepEqual(
        shares.slice(0, 9),
        Array.from({ length: 9 }, (_, i) => (windows * (i + 1)) / 10 / windows),
      );
      assert.equal(shares.at(-1), 1);
    } finally {
      await jobs.close();
    }
  });

  let redis: RedisProcess;
  let worker: QueueWorker;
  const engines: JobEngine[] = [];
  before(async () => {
    redis = await startRedis();
    worker = await QueueWorker.start({
      url: redis.url,
      version: VERSION,
      kinds: AGENT_JOB_KINDS,
      threads: 1,
    });
    engines.push(
      new LocalJobs({ kinds: AGENT_JOB_KINDS, threads: 1 }),
      new LocalJobs({ kinds: AGENT_JOB_KINDS, threads: 2 }),
      await QueuedJobs.connect({ url: redis.url, version: VERSION }),
    );
  });
  after(async () => {
    await Promise.all(engines.map((jobs) => jobs.close()));
    await worker?.close(true);
    await redis?.stop();
  });

  /** Of each engine: on one thread, on two, and at a queue on Redis. */
  async function onEach<Result>(evaluate: (jobs: JobEngine) => Promise<Result>): Promise<Result[]> {
    const results: Result[] = [];
    for (const jobs of engines) results.push(await evaluate(jobs));
    return results;
  }

  it('plays a task and a trace of one’s own, the same on threads and through a queue', async () => {
    llmserve.tasks.add(ownTask(4));
    addOwnTrace();
    for (const scenario of [{}, { trace: 'mine' }]) {
      const [one, ...others] = await onEach(async (jobs) =>
        played(await evaluate({ ...plan, inputs: { scenario } }, jobs)),
      );
      assert.equal(one!.tasks[0].episodes.length, 3);
      assert.equal(one!.tasks[0].episodes[0].windows, 6);
      for (const other of others) assert.deepEqual(other, one);
      assert.deepEqual(played(await evaluate({ ...plan, inputs: { scenario } })), one);
    }
  });

  it('plays the task that its id stands for now, where another was played before', async () => {
    llmserve.tasks.add(ownTask(4));
    const slow = await onEach(async (jobs) => played(await evaluate(plan, jobs)));
    llmserve.tasks.add(ownTask(12));
    const fast = await onEach(async (jobs) => played(await evaluate(plan, jobs)));
    for (const [i, evaluation] of fast.entries()) {
      assert.notDeepEqual(evaluation, slow[i]);
      assert.deepEqual(evaluation, fast[0]);
    }
  });

  it('plays servers and traffic that are held out from training', async () => {
    const scenarios = scenariosOf('llmserve', 'held-out')!;
    const { L40S, Mooncake } = scenarios;
    const own = { ...plan, taskIds: ['static_workload'], seeds: firstSeeds('test', 1) };
    const found = await evaluateScenarios(own, { L40S: L40S!, Mooncake: Mooncake! });
    const alone = await evaluate({ ...own, inputs: { scenario: L40S as { profile: string } } });
    assert.deepEqual([...found.keys()], ['L40S', 'Mooncake']);
    assert.deepEqual(found.get('L40S')!.tasks[0]!.return, alone.tasks[0]!.return);
    assert.notDeepEqual(found.get('Mooncake')!.tasks[0]!.return, alone.tasks[0]!.return);
    assert.deepEqual([scenariosOf('llmserve', 'test'), scenariosOf('fleet', 'held-out')], [undefined, {}]);
  });

  it('plays a task of one’s own under shifts', async () => {
    llmserve.tasks.add(ownTask(4));
    const [jobs] = engines;
    const shifted = await evaluateScenarios(
      { ...plan, seeds: firstSeeds('test', 1) },
      scenariosOf('llmserve', 'shifted')!,
      jobs!,
    );
    const returns = [...shifted.values()].map(({ tasks }) => tasks[0].return.mean);
    assert.equal(new Set(returns).size, shifted.size);
  });
});
