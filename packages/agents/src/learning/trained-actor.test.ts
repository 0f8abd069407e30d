import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { actorLayerSizes } from './actor-critic.ts';
import { simdKernels } from './kernels.ts';
import { parameterCount } from './multilayer-perceptron.ts';
import { plainKernels } from './plain-kernels.fixture.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';
import { type ActorWeights, decodeActor, encodeActor, TrainedActor } from './trained-actor.ts';

const shape = { observationSize: 3, headSizes: [4, 2], hidden: [5] };
const random = new RandomStream(1, 'weights');
const weights: ActorWeights = {
  shape,
  keepBonus: 0.5,
  moments: { rows: 10, mean: [1, 2, 3], spread: [10, 40, 90] },
  parameters: new Float32Array(parameterCount(actorLayerSizes(shape))).map(() => random.normal()),
};

function choices(actor: TrainedActor): number[][] {
  const inputs = new RandomStream(2, 'inputs');
  const bins = new Int32Array(2);
  return Array.from({ length: 50 }, () => {
    actor.act(
      Float32Array.from({ length: 3 }, () => 3 * inputs.normal()),
      bins,
    );
    return [...bins];
  });
}

describe('TrainedActor', () => {
  /** One input x, normalized from mean 10 and deviation 2; logits x and -x, and -x and x + 0.5; 0.3 for keeping. */
  const small = new TrainedActor(
    {
      shape: { observationSize: 1, headSizes: [2, 2], hidden: [] },
      keepBonus: 0.3,
      moments: { rows: 4, mean: [10], spread: [16] },
      parameters: Float32Array.of(1, -1, -1, 1, 0, 0, 0, 0.5),
    },
    plainKernels(),
  );
  const act = (observation: number, inForce: [number, number]) => {
    const bins = Int32Array.from(inForce);
    small.act([observation], bins);
    return [...bins];
  };

  it('chooses the likeliest bin of every head, given the normalized observation', () => {
    assert.deepEqual(act(14, [1, 0]), [0, 1]);
    assert.deepEqual(act(6, [0, 1]), [1, 0]);
  });

  it('keeps the bin in force when another is hardly likelier', () => {
    assert.deepEqual(act(9.9, [1, 1]), [1, 1]);
    assert.deepEqual(act(9.9, [0, 1]), [0, 1]);
    assert.deepEqual(act(9.9, [0, 0]), [0, 1]);
  });

  it('acts the same on every kind of kernels', () => {
    const plain = choices(new TrainedActor(weights, plainKernels()));
    assert.deepEqual(choices(new TrainedActor(weights, simdKernels())), plain);
    assert.ok(new Set(plain.map(String)).size > 1);
  });

  it('acts the same after going through a file', () => {
    const file = encodeActor(weights, { task: 'static_workload' });
    const { weights: read, metadata } = decodeActor(file);
    assert.deepEqual(read, weights);
    assert.equal(metadata.task, 'static_workload');
    assert.deepEqual(
      choices(new TrainedActor(read, plainKernels())),
      choices(new TrainedActor(weights, plainKernels())),
    );
  });

  it('lays its layers out as PyTorch does', () => {
    const { tensors } = decodeSafetensors(encodeActor(weights, {}));
    assert.deepEqual(tensors['actor.0.weight'].shape, [5, 3]);
    assert.deepEqual(tensors['actor.1.weight'].shape, [6, 5]);
    // Input 2 of unit 1 of the first layer.
    assert.equal(tensors['actor.0.weight'].values[1 * 3 + 2], weights.parameters[2 * 5 + 1]);
  });

  it('says what a file lacks', () => {
    const { tensors, metadata } = decodeSafetensors(encodeActor(weights, {}));
    const { 'actor.1.bias': _, ...incomplete } = tensors;
    for (const [file, message] of [
      [{ tensors, metadata: {} }, /the `shape` of an actor/],
      [{ tensors, metadata: { shape: '{' } }, /the `shape` of an actor/],
      [{ tensors, metadata: { shape: '{"observationSize":3,"headSizes":[0],"hidden":[]}' } }, /the `shape`/],
      [{ tensors: incomplete, metadata }, /Expected a tensor `actor.1.bias` of shape 6, got none/],
      [
        { tensors: { ...tensors, 'observation.mean': tensors['observation.rows'] }, metadata },
        /Expected a tensor `observation.mean` of shape 3, got one of shape 1/,
      ],
    ] as const) {
      assert.throws(() => decodeActor(encodeSafetensors(file)), { code: 'TENSOR_FILE', message });
    }
  });
});
