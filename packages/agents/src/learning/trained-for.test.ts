import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, type ServeTask } from '@servegym/environments';
import { loadServePolicy } from '../policies/serve-policies.ts';
import { actorLayerSizes } from './actor-critic.ts';
import { encodeJsonPolicy, encodeNetwork, knownTask, SERVE_LEARNER, trainedFor } from './learners.ts';
import { parameterCount } from './multilayer-perceptron.ts';

describe('knownTask', () => {
  it('is the task of an id', () => {
    for (const taskId of llmserve.tasks.shippedIds)
      assert.equal(knownTask(llmserve, taskId), llmserve.tasks.shipped[taskId]);
  });

  it('names the tasks when asked for another', () => {
    for (const taskId of ['static', 3, 'toString']) {
      assert.throws(
        () => knownTask(llmserve, taskId),
        /Expected a task named one of static_workload, bursty_workload/,
      );
    }
  });
});

const training = {};
const own: ServeTask = { ...llmserve.tasks.shipped.static_workload, id: 'trained_task' };

/** The file that each algorithm writes for a task. */
function filesFor(taskId: string): Record<string, Uint8Array> {
  const size = llmserve.features.length;
  const { headSizes } = SERVE_LEARNER.codec(own);
  const shape = { observationSize: size, headSizes, hidden: [4] };
  const weights = {
    shape,
    keepBonus: 1,
    moments: { rows: 2, mean: new Array(size).fill(0), spread: new Array(size).fill(1) },
    parameters: new Float32Array(parameterCount(actorLayerSizes(shape))),
  };
  return {
    network: encodeNetwork(SERVE_LEARNER, { taskId, weights, training }),
    constant: Buffer.from(encodeJsonPolicy(llmserve, taskId, { action: llmserve.defaultAction }, training)),
  };
}

describe('the task that a policy was trained on', () => {
  it('is told by its id and, for a task of one’s own, by a digest', () => {
    llmserve.tasks.add(own);
    const { id: environment, version } = llmserve;
    assert.deepEqual(trainedFor(llmserve, 'static_workload'), {
      ...{ environment, version, task: 'static_workload' },
    });
    const { task, task_digest } = trainedFor(llmserve, own.id);
    assert.equal(task, own.id);
    assert.match(task_digest!, /^[0-9a-f]{16}$/);
  });

  it('is known by its digest, whatever it is called', () => {
    llmserve.tasks.add(own);
    const files = filesFor(own.id);
    llmserve.tasks.add({ ...own, name: 'Renamed', description: 'Said in other words.', difficulty: 'hard' });
    for (const [kind, file] of Object.entries(files)) {
      assert.equal(loadServePolicy(file).taskId, own.id, kind);
    }
  });

  it('is refused when the file of the task says something else', () => {
    llmserve.tasks.add(own);
    const { task_digest } = trainedFor(llmserve, own.id);
    const files = filesFor(own.id);
    const objectives = { ...own.objectives, batch: { ...own.objectives.batch, tpotMs: 51 } };
    for (const changed of [{ windows: own.windows + 1 }, { objectives }, { referenceCostPer1k: 1 }]) {
      llmserve.tasks.add({ ...own, ...changed });
      const now = trainedFor(llmserve, own.id).task_digest;
      assert.notEqual(now, task_digest);
      for (const [kind, file] of Object.entries(files)) {
        assert.throws(
          () => loadServePolicy(file),
          {
            code: /^POLICY_/,
            message: new RegExp(
              `task ${own.id} with the digest ${now}, got one for ${task_digest}: .* train anew`,
            ),
          },
          kind,
        );
      }
    }
  });

  it('is refused when it tells no digest, as a policy for another task of the same id', () => {
    llmserve.tasks.add(own);
    const { constant } = filesFor(own.id);
    const { task_digest: _, ...rest } = JSON.parse(Buffer.from(constant!).toString());
    assert.throws(() => loadServePolicy(Buffer.from(JSON.stringify(rest))), /got one for none/);
  });
});
