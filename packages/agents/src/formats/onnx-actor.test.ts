import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { actorLayerSizes } from '../learning/actor-critic.ts';
import { parameterCount } from '../learning/multilayer-perceptron.ts';
import { plainKernels } from '../learning/plain-kernels.ts';
import { type ActorWeights, TrainedActor } from '../learning/trained-actor.ts';
import { encodeOnnxActor } from './onnx-actor.ts';

const ROWS = 2000;
const shape = { observationSize: 26, headSizes: [13, 10, 8, 3, 2, 2], hidden: [64, 64] };
const python =
  process.env.SERVEGYM_PYTHON ?? assert.fail('SERVEGYM_PYTHON is not set. Run the tests with `npm test`.');
const script = join(import.meta.dirname, '../../test/python/onnx_actions.py');

function randomActor(random: RandomStream): ActorWeights {
  const { observationSize } = shape;
  return {
    shape,
    keepBonus: 0.3,
    moments: {
      rows: 100,
      mean: Array.from({ length: observationSize }, () => 3 * random.normal()),
      spread: Array.from({ length: observationSize }, () => 500 * random.uniform()),
    },
    parameters: new Float32Array(parameterCount(actorLayerSizes(shape))).map(() => random.normal() / 5),
  };
}

describe('encodeOnnxActor', () => {
  it('acts in onnxruntime as here', () => {
    const random = new RandomStream(1, 'onnx');
    const weights = randomActor(random);
    const observations = Array.from({ length: ROWS }, () =>
      Float32Array.from({ length: shape.observationSize }, () => 5 * random.normal()),
    );
    const binsInForce = observations.map(() => shape.headSizes.map((size) => random.integer(0, size - 1)));
    const actor = new TrainedActor(weights, plainKernels());
    const expected = observations.map((observation, row) => {
      const bins = Int32Array.from(binsInForce[row]!);
      actor.act(observation, bins);
      return [...bins];
    });

    const model = Buffer.from(encodeOnnxActor(weights, { task: 'bursty_workload' })).toString('base64');
    const request = { model, observations: observations.map((row) => [...row]), bins_in_force: binsInForce };
    const { stdout, stderr } = spawnSync(python, [script], {
      input: JSON.stringify(request),
      encoding: 'utf8',
      maxBuffer: 1e8,
    });
    assert.notEqual(stdout, '', stderr);
    const { bins, metadata } = JSON.parse(stdout);
    assert.deepEqual(metadata, { task: 'bursty_workload', head_sizes: '13,10,8,3,2,2' });
    assert.deepEqual(bins, expected);
    for (const head of shape.headSizes.keys()) {
      assert.ok(new Set(expected.map((row) => row[head])).size > 1, `head ${head} always chooses the same`);
    }
  });
});
