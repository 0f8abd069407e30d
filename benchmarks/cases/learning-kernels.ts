import { defaultDevice, init, jit, numpy as np, tree, valueAndGrad } from '@jax-js/jax';
import { RandomStream } from '@servegym/simulator';
import type { Kernels } from '../../packages/agents/src/learning/kernels.ts';
import { simdKernels } from '../../packages/agents/src/learning/kernels.ts';
import {
  type LayerSizes,
  MultilayerPerceptron,
  parameterCount,
} from '../../packages/agents/src/learning/multilayer-perceptron.ts';
import { plainKernels } from '../../packages/agents/src/learning/plain-kernels.fixture.ts';
import { benchmark, median } from '../harness.ts';

const SIZES: LayerSizes = [16, 64, 64, 6];
const INPUTS = SIZES[0];
const OUTPUTS = SIZES.at(-1)!;
const BATCH = 256;
/** Of a round. */
const STEPS = 25;
const DECISIONS = 200;
const ADAM = { learningRate: 1e-4, beta1: 0.9, beta2: 0.999, epsilon: 1e-5 };
/** Between the parameters of two of them after some steps. */
const TOLERANCE = 1e-5;

/** Somebody who trains the network, on the same batch in every step, to answer 0. */
interface Trainer {
  readonly name: string;
  train(): void;
  decide(): void;
  /** As our kernels have them: weights and bias of each layer in turn. Waits for steps under way. */
  parameters(): Float32Array;
}

const random = new RandomStream(0, 'benchmark');
const batch = Float32Array.from({ length: BATCH * INPUTS }, () => random.normal());
const start = new Float32Array(parameterCount(SIZES));
new MultilayerPerceptron(plainKernels(), SIZES, start, new Float32Array(start.length), 1).initialize(
  random,
  1,
);

function onKernels(kernels: Kernels): Trainer {
  const [parameters, gradients, firstMoments, secondMoments] = Array.from({ length: 4 }, () =>
    kernels.allocate(start.length),
  ) as [Float32Array, Float32Array, Float32Array, Float32Array];
  const adam = { parameters, gradients, firstMoments, secondMoments };
  const network = new MultilayerPerceptron(kernels, SIZES, parameters, gradients, BATCH);
  parameters.set(start);
  const x = kernels.allocate(batch.length);
  x.set(batch);
  const one = x.subarray(0, INPUTS);
  let step = 0;
  return {
    name: `${kernels.name} kernels`,
    train() {
      const y = network.forward(x, BATCH);
      // The gradient of the mean over the rows of half the squares.
      for (let i = 0; i < BATCH * OUTPUTS; i++) network.outputGradients[i] = y[i] / BATCH;
      network.backward(BATCH);
      kernels.adam(adam, { learningRate: ADAM.learningRate, gradientScale: 1, step: ++step });
      gradients.fill(0);
    },
    decide: () => network.forward(one, 1),
    parameters: () => Float32Array.from(parameters),
  };
}

type Layer = { weights: np.Array; bias: np.Array };
type Training = Record<'layers' | 'firstMoments' | 'secondMoments', Layer[]>;

/** Forward, backward and Adam in one function that is compiled as a whole. */
async function onJax(): Promise<Trainer> {
  await init('wasm');
  defaultDevice('wasm');
  const forward = (layers: Layer[], x: np.Array) =>
    layers.reduce((input, { weights, bias }, l) => {
      const sums = np.add(np.matmul(input, weights), bias);
      return l === layers.length - 1 ? sums : np.tanh(sums);
    }, x);
  const loss = (layers: Layer[], x: np.Array) => np.sum(np.square(forward(layers, x))).mul(0.5 / BATCH);
  const { learningRate, beta1, beta2, epsilon } = ADAM;
  const mixed = (beta: number) => (average: np.Array, value: np.Array) =>
    average.mul(beta).add(value.mul(1 - beta));
  /** The corrections are those of Adam's averages for the steps taken. */
  const update = jit(
    (
      { layers, firstMoments, secondMoments }: Training,
      x: np.Array,
      firstCorrection: np.Array,
      secondCorrection: np.Array,
    ): Training => {
      const [value, gradients] = valueAndGrad(loss)(tree.ref(layers), x);
      value.dispose();
      const squares = tree.map(np.square, tree.ref(gradients)) as Layer[];
      const first = tree.map(mixed(beta1), firstMoments, gradients) as Layer[];
      const second = tree.map(mixed(beta2), secondMoments, squares) as Layer[];
      const moved = tree.map(
        (parameter: np.Array, m: np.Array, v: np.Array) => {
          const deviation = np.sqrt(v.mul(secondCorrection.ref)).add(epsilon);
          return parameter.sub(m.mul(learningRate).mul(firstCorrection.ref).div(deviation));
        },
        layers,
        tree.ref(first),
        tree.ref(second),
      ) as Layer[];
      firstCorrection.dispose();
      secondCorrection.dispose();
      return { layers: moved, firstMoments: first, secondMoments: second };
    },
  );
  const decision = jit(forward);

  const x = np.array(batch).reshape([BATCH, INPUTS]);
  const one = np.array(batch.slice(0, INPUTS)).reshape([1, INPUTS]);
  let at = 0;
  const layers = SIZES.slice(1).map((outputs, l): Layer => {
    const inputs = SIZES[l];
    const weights = np.array(start.slice(at, at + inputs * outputs)).reshape([inputs, outputs]);
    const bias = np.array(start.slice(at + inputs * outputs, at + (inputs + 1) * outputs));
    at += (inputs + 1) * outputs;
    return { weights, bias };
  });
  const zeros = () => tree.map((each: np.Array) => np.zerosLike(each), tree.ref(layers)) as Layer[];
  let training: Training = { layers, firstMoments: zeros(), secondMoments: zeros() };
  let step = 0;
  return {
    name: 'jax-js, wasm, compiled',
    train() {
      step++;
      const corrections = [beta1, beta2].map((beta) => np.array(1 / (1 - beta ** step)));
      training = update(training, x.ref, corrections[0], corrections[1]);
    },
    decide: () => decision(tree.ref(training.layers), one.ref).dataSync(),
    parameters: () =>
      Float32Array.from(
        training.layers.flatMap(({ weights, bias }) => [
          ...weights.ref.reshape([-1]).dataSync(),
          ...bias.ref.dataSync(),
        ]),
      ),
  };
}

export default benchmark({
  what: 'Milliseconds of one training step of a small network (forward, backward and Adam) and microseconds of one decision, on our SIMD kernels, on their plain twin and by jax-js, an automatic differentiation library, compiled for its WebAssembly backend. All compute on one thread; what is measured is its processor time, which other programs hardly change. They take turns: of the times the fastest of several rounds, of the ratios to the SIMD kernels the median.',
  options: { rounds: 20 },
  async *run({ rounds: count }) {
    const trainers = [onKernels(simdKernels()), onKernels(plainKernels()), await onJax()];
    // Warms up, compiles, and shows that all do the same.
    for (const trainer of trainers) {
      for (let i = 0; i < 10; i++) trainer.train();
      trainer.decide();
    }
    const [expected, ...others] = trainers.map((trainer) => trainer.parameters());
    for (const [t, parameters] of others.entries()) {
      const error = Math.max(...parameters.map((value, p) => Math.abs(value - expected![p])));
      if (!(error < TOLERANCE)) throw new Error(`${trainers[t + 1].name} ends ${error} away from the others`);
    }
    const rounds = Array.from({ length: count }, () =>
      trainers.map((trainer) => ({
        step: processorUs(STEPS, trainer.train, trainer.parameters) / 1000,
        decision: processorUs(DECISIONS, trainer.decide),
      })),
    );
    for (const [t, { name }] of trainers.entries()) {
      const fastest = (of: 'step' | 'decision') => Math.min(...rounds.map((round) => round[t][of]));
      const ratio = (of: 'step' | 'decision') => median(rounds.map((round) => round[t][of] / round[0][of]));
      yield {
        what: name,
        'training step, ms': fastest('step'),
        'step, ratio': ratio('step'),
        'decision, us': fastest('decision'),
        'decision, ratio': ratio('decision'),
      };
    }
  },
});

/** Processor time of one of `count` calls, `finish` included, us. */
function processorUs(count: number, call: () => void, finish?: () => void): number {
  const started = process.cpuUsage();
  for (let i = 0; i < count; i++) call();
  finish?.();
  const { user, system } = process.cpuUsage(started);
  return (user + system) / count;
}
