import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inferencegym, llmserve } from '@servegym/environments';
import { RandomStream } from '@servegym/simulator';
import fc from 'fast-check';
import { actorLayerSizes } from './actor-critic.ts';
import { decodeNetwork, encodeNetwork, GYM_LEARNER, SERVE_LEARNER, type TrainedNetwork } from './learners.ts';
import { parameterCount } from './multilayer-perceptron.ts';
import { decodeActor, encodeActor } from './trained-actor.ts';

const size = llmserve.features.length;
const { headSizes } = SERVE_LEARNER.codec(llmserve.tasks.shipped.bursty_workload);
const shape = { observationSize: size, headSizes, hidden: [4] };
const random = new RandomStream(1, 'weights');
const actor: TrainedNetwork = {
  taskId: 'bursty_workload',
  weights: {
    shape,
    keepBonus: 0.5,
    moments: { rows: 2, mean: new Array(size).fill(1), spread: new Array(size).fill(2) },
    parameters: new Float32Array(parameterCount(actorLayerSizes(shape))).map(() => random.normal()),
  },
  training: { algorithm: 'ppo', steps: 100, seed: 0 },
};

/** The actor's file with something else in its metadata. */
function fileWith(changes: Record<string, string>): Uint8Array {
  const { weights, metadata } = decodeActor(encodeNetwork(SERVE_LEARNER, actor));
  return encodeActor(weights, { ...metadata, ...changes });
}

describe('an actor of llmserve', () => {
  it('comes back from its file', () => {
    const { task, ...decoded } = decodeNetwork(SERVE_LEARNER, encodeNetwork(SERVE_LEARNER, actor));
    assert.deepEqual(decoded, actor);
    assert.equal(task, llmserve.tasks.shipped.bursty_workload);
  });

  it('is refused where it does not belong', () => {
    for (const [changes, message] of [
      [{ environment: 'other' }, /Expected a policy for the environment llmserve, got other: train it anew/],
      [{ version: '0.0.0' }, new RegExp(`for the version of llmserve ${llmserve.version}, got 0.0.0`)],
      [{ action_bins: '{}' }, /for the action bins .*, got {}/],
      [{ task: 'holiday' }, /Expected a policy for one of static_workload, .*, got one for holiday/],
    ] as const) {
      assert.throws(() => decodeNetwork(SERVE_LEARNER, fileWith(changes)), { code: /^POLICY_/, message });
    }
  });

  it('is refused when its network sees or does something else', () => {
    const { weights, metadata } = decodeActor(encodeNetwork(SERVE_LEARNER, actor));
    const other = { ...shape, headSizes: [...headSizes].reverse() };
    const file = encodeActor({ ...weights, shape: other }, metadata);
    assert.throws(() => decodeNetwork(SERVE_LEARNER, file), {
      code: /^POLICY_/,
      message: /for the head sizes/,
    });
  });
});

describe('the bins of an action of inferencegym', () => {
  for (const taskId of inferencegym.tasks.shippedIds) {
    const codec = GYM_LEARNER.codec(inferencegym.tasks.shipped[taskId]);
    const bins = fc.tuple(...codec.headSizes.map((size) => fc.nat(size - 1)));

    it(`decode to valid actions, and those encode to the same bins (task ${taskId})`, () => {
      fc.assert(
        fc.property(bins, (row) => {
          const action = codec.decode(row);
          assert.deepEqual(inferencegym.actionSchema.parse(action), action);
          assert.deepEqual(codec.encode(action), row);
        }),
      );
    });

    it(`have the default action exactly (task ${taskId})`, () => {
      assert.deepEqual(codec.decode(codec.encode(inferencegym.defaultAction)), inferencegym.defaultAction);
    });
  }

  it('have a head for each knob that is active, and leave the others at their defaults', () => {
    assert.deepEqual(
      inferencegym.tasks.shippedIds.map(
        (id) => GYM_LEARNER.codec(inferencegym.tasks.shipped[id]).headSizes.length,
      ),
      [2, 3, 5],
    );
    const { spec_length, prefill_disagg, quant_tier } = GYM_LEARNER.codec(
      inferencegym.tasks.shipped[1],
    ).decode([0, 0]);
    assert.deepEqual([spec_length, prefill_disagg, quant_tier], [0, false, 0]);
  });

  it('take the nearest of an action between them', () => {
    const codec = GYM_LEARNER.codec(inferencegym.tasks.shipped[1]);
    const decoded = codec.decode(
      codec.encode({ ...inferencegym.defaultAction, batch_size: 440, kv_budget: 0.44 }),
    );
    assert.deepEqual([decoded.batch_size, decoded.kv_budget], [384, 0.4]);
  });
});
