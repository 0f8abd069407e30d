// Milliseconds of one training step of a small network (forward, backward and Adam), and microseconds of one decision,
// on each kind of kernels, on one core. The fastest of several rounds.
import { parseArgs } from 'node:util';
import {
  type LayerSizes,
  MultilayerPerceptron,
  parameterCount,
  plainKernels,
  simdKernels,
} from '@servegym/agents';
import { RandomStream } from '@servegym/simulator';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    json: { type: 'boolean', default: false },
  },
});

const SIZES: LayerSizes = [16, 64, 64, 6];
const BATCH = 256;
const STEPS = 100;
const DECISIONS = 5_000;

const rows = [simdKernels(), plainKernels()].map((kernels) => {
  const [parameters, gradients, firstMoments, secondMoments] = Array.from({ length: 4 }, () =>
    kernels.allocate(parameterCount(SIZES)),
  ) as [Float32Array, Float32Array, Float32Array, Float32Array];
  const adam = { parameters, gradients, firstMoments, secondMoments };
  const random = new RandomStream(0, 'benchmark');
  const network = new MultilayerPerceptron(kernels, SIZES, parameters, gradients, BATCH);
  network.initialize(random, 1);
  const x = kernels.allocate(BATCH * SIZES[0]);
  for (let i = 0; i < x.length; i++) x[i] = random.normal();
  const one = x.subarray(0, SIZES[0]);

  let step = 0;
  const trainingStep = () => {
    const y = network.forward(x, BATCH);
    // The gradient of the mean of half the squares: drives every output to 0.
    for (let i = 0; i < BATCH * SIZES.at(-1)!; i++) network.outputGradients[i] = y[i]! / BATCH;
    network.backward(BATCH);
    kernels.adam(adam, { learningRate: 1e-4, gradientScale: 1, step: ++step });
    gradients.fill(0);
  };
  return {
    kernels: kernels.name,
    training_step_ms: Number((fastest(STEPS, trainingStep) / 1000).toFixed(3)),
    decision_us: Number(fastest(DECISIONS, () => network.forward(one, 1)).toFixed(2)),
  };
});
if (values.json) console.log(JSON.stringify(rows));
else console.table(rows);

/** Microseconds of one of `count` calls, in the fastest round. */
function fastest(count: number, call: () => void): number {
  let best = Infinity;
  for (let round = 0; round < Number(values.rounds); round++) {
    const started = performance.now();
    for (let i = 0; i < count; i++) call();
    best = Math.min(best, (1000 * (performance.now() - started)) / count);
  }
  return best;
}
