import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { RandomStream } from '@servegym/simulator';
import { SHIPPED_NAMES, shippedFile } from '../policies/serve-policies.ts';
import { actorLayerSizes } from './actor-critic.ts';
import { parameterCount } from './multilayer-perceptron.ts';
import { encodeOnnxActor } from './onnx-actor.ts';
import { RunningNormalizer } from './running-normalizer.ts';
import { type ActorWeights, decodeActor, TrainedActor } from './trained-actor.ts';

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

/** A network of random weights, and those that come with the package. */
function actors(): Map<string, ActorWeights> {
  const known = new Map([['random', randomActor(new RandomStream(1, 'onnx'))]]);
  for (const name of SHIPPED_NAMES) {
    for (const taskId of llmserve.tasks.shippedIds) {
      const { weights } = decodeActor(readFileSync(shippedFile(name, taskId)));
      known.set(`${name} on ${taskId}`, weights);
    }
  }
  return known;
}

/** Observations like those that an actor was trained on, and bins in force. */
function situations({ shape, moments }: ActorWeights) {
  const random = new RandomStream(2, 'situations');
  const { mean, deviation } = RunningNormalizer.from(moments).scale();
  return Array.from({ length: ROWS }, () => ({
    observation: Float32Array.from(mean, (center, i) => center + 1.5 * deviation[i] * random.normal()),
    inForce: shape.headSizes.map((size) => random.integer(0, size - 1)),
  }));
}

describe('encodeOnnxActor', () => {
  it('acts in onnxruntime as here', () => {
    const cases = [...actors()].map(([what, weights]) => ({ what, weights, seen: situations(weights) }));
    const requests = cases.map(({ what, weights, seen }) => ({
      model: Buffer.from(encodeOnnxActor(weights, { what })).toString('base64'),
      observations: seen.map(({ observation }) => [...observation]),
      bins_in_force: seen.map(({ inForce }) => inForce),
    }));
    const { stdout, stderr } = spawnSync(python, [script], {
      ...{ input: JSON.stringify(requests), encoding: 'utf8', maxBuffer: 1e8 },
    });
    assert.notEqual(stdout, '', stderr);
    for (const [i, { bins, metadata }] of JSON.parse(stdout).entries()) {
      const { what, weights, seen } = cases[i];
      const actor = new TrainedActor(weights);
      const expected = seen.map(({ observation, inForce }) => {
        const chosen = Int32Array.from(inForce);
        actor.act(observation, chosen);
        return [...chosen];
      });
      assert.deepEqual(metadata, { what, head_sizes: weights.shape.headSizes.join() });
      assert.deepEqual(bins, expected, what);
      assert.ok(new Set(expected.map(String)).size > 10, `${what} hardly ever changes its mind`);
    }
  });
});
