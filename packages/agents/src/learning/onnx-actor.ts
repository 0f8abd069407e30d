import { actorLayerSizes } from './actor-critic.ts';
import { ProtobufMessage } from './protobuf-message.ts';
import { NORMALIZED_CLIP, RunningNormalizer } from './running-normalizer.ts';
import type { ActorWeights } from './trained-actor.ts';

/*
 * Field numbers and constants of onnx.proto3, and versions of the format and of the operators that have all that is used.
 * https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3
 */
const MODEL = { irVersion: 1, producer: 2, graph: 7, opsets: 8, metadata: 14 } as const;
const OPSET = { version: 2 } as const;
const METADATA = { key: 1, value: 2 } as const;
const GRAPH = { node: 1, name: 2, initializer: 5, input: 11, output: 12 } as const;
const NODE = { input: 1, output: 2, name: 3, operator: 4, attribute: 5 } as const;
const ATTRIBUTE = { name: 1, integer: 3, type: 20 } as const;
const INTEGER_ATTRIBUTE = 2;
const TENSOR = { dimension: 1, type: 2, name: 8, data: 9 } as const;
const VALUE = { name: 1, type: 2 } as const;
const TYPE = { tensor: 1 } as const;
const TENSOR_TYPE = { element: 1, shape: 2 } as const;
const SHAPE = { dimension: 1 } as const;
const DIMENSION = { size: 1, symbol: 2 } as const;
const FLOAT = 1;
const INT64 = 7;
const DOUBLE = 11;
const IR_VERSION = 8;
const OPSET_VERSION = 17;

/**
 * An actor as an ONNX model.
 *
 * - `observation` [batch x features], float: what the environment's encoder gives, not normalized
 * - `bins_in_force` [batch x heads], int64
 * - `logits` [batch x all bins], float: with the bonus for the bins in force
 * - `bins` [batch x heads], int64: the likeliest of every head
 *
 * `metadata` is kept in the model.
 */
export function encodeOnnxActor(
  weights: ActorWeights,
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  const { observationSize, headSizes } = weights.shape;
  const graph = new ProtobufMessage().text(GRAPH.name, 'actor');
  for (const node of nodes(weights)) graph.message(GRAPH.node, node);
  for (const tensor of initializers(weights)) graph.message(GRAPH.initializer, tensor);
  const logitCount = headSizes.reduce((sum, size) => sum + size, 0);
  graph
    .message(GRAPH.input, value('observation', FLOAT, observationSize))
    .message(GRAPH.input, value('bins_in_force', INT64, headSizes.length))
    .message(GRAPH.output, value('bins', INT64, headSizes.length))
    .message(GRAPH.output, value('logits', FLOAT, logitCount));
  const model = new ProtobufMessage()
    .integer(MODEL.irVersion, IR_VERSION)
    .text(MODEL.producer, 'servegym')
    .message(MODEL.graph, graph)
    .message(MODEL.opsets, new ProtobufMessage().integer(OPSET.version, OPSET_VERSION));
  for (const [key, text] of Object.entries({ ...metadata, head_sizes: headSizes.join() })) {
    model.message(MODEL.metadata, new ProtobufMessage().text(METADATA.key, key).text(METADATA.value, text));
  }
  return model.encode();
}

function* nodes({ shape }: ActorWeights): Generator<ProtobufMessage> {
  // Normalized in 64 bits, as in training.
  yield node('Cast', ['observation'], ['observation64'], { to: DOUBLE });
  yield node('Sub', ['observation64', 'mean'], ['centered']);
  yield node('Div', ['centered', 'deviation'], ['scaled']);
  yield node('Clip', ['scaled', 'least', 'most'], ['clipped']);
  yield node('Cast', ['clipped'], ['layer0'], { to: FLOAT });
  const layers = actorLayerSizes(shape).length - 1;
  for (let l = 0; l < layers; l++) {
    const isLast = l === layers - 1;
    const result = isLast ? 'preferences' : `sum${l}`;
    yield node('Gemm', [`layer${l}`, `actor.${l}.weight`, `actor.${l}.bias`], [result]);
    if (!isLast) yield node('Tanh', [result], [`layer${l + 1}`]);
  }
  const heads = shape.headSizes.map((_, head) => head);
  const named = (name: string) => heads.map((head) => `${name}${head}`);
  yield node('Split', ['preferences', 'head_sizes'], named('preference'), { axis: 1 });
  yield node('Split', ['bins_in_force', 'ones'], named('column'), { axis: 1 });
  for (const head of heads) {
    yield node('Squeeze', [`column${head}`, 'axis1'], [`bin_in_force${head}`]);
    yield node('OneHot', [`bin_in_force${head}`, `size${head}`, 'keep_bonus'], [`bonus${head}`], { axis: 1 });
    yield node('Add', [`preference${head}`, `bonus${head}`], [`logit${head}`]);
    yield node('ArgMax', [`logit${head}`], [`bin${head}`], { axis: 1, keepdims: 1 });
  }
  yield node('Concat', named('logit'), ['logits'], { axis: 1 });
  yield node('Concat', named('bin'), ['bins'], { axis: 1 });
}

function* initializers(weights: ActorWeights): Generator<ProtobufMessage> {
  const { shape, keepBonus, moments, parameters } = weights;
  const { headSizes } = shape;
  const { mean, deviation } = RunningNormalizer.from(moments).scale();
  yield tensor('mean', [mean.length], mean);
  yield tensor('deviation', [deviation.length], deviation);
  yield tensor('least', [], Float64Array.of(-NORMALIZED_CLIP));
  yield tensor('most', [], Float64Array.of(NORMALIZED_CLIP));
  const sizes = actorLayerSizes(shape);
  let at = 0;
  for (let l = 1; l < sizes.length; l++) {
    const [inputs, outputs] = [sizes[l - 1], sizes[l]];
    const biasAt = at + inputs * outputs;
    yield tensor(
      `actor.${l - 1}.weight`,
      [inputs, outputs],
      Float32Array.from(parameters.subarray(at, biasAt)),
    );
    yield tensor(
      `actor.${l - 1}.bias`,
      [outputs],
      Float32Array.from(parameters.subarray(biasAt, biasAt + outputs)),
    );
    at = biasAt + outputs;
  }
  yield tensor('head_sizes', [headSizes.length], BigInt64Array.from(headSizes, BigInt));
  yield tensor('ones', [headSizes.length], new BigInt64Array(headSizes.length).fill(1n));
  yield tensor('axis1', [1], BigInt64Array.of(1n));
  yield tensor('keep_bonus', [2], Float32Array.of(0, keepBonus));
  for (const [head, size] of headSizes.entries())
    yield tensor(`size${head}`, [], BigInt64Array.of(BigInt(size)));
}

function node(
  operator: string,
  inputs: readonly string[],
  outputs: readonly string[],
  attributes: Readonly<Record<string, number>> = {},
): ProtobufMessage {
  const message = new ProtobufMessage();
  for (const input of inputs) message.text(NODE.input, input);
  for (const output of outputs) message.text(NODE.output, output);
  message.text(NODE.name, `${operator} ${outputs[0]}`).text(NODE.operator, operator);
  for (const [name, integer] of Object.entries(attributes)) {
    message.message(
      NODE.attribute,
      new ProtobufMessage()
        .text(ATTRIBUTE.name, name)
        .integer(ATTRIBUTE.integer, integer)
        .integer(ATTRIBUTE.type, INTEGER_ATTRIBUTE),
    );
  }
  return message;
}

function tensor(
  name: string,
  shape: readonly number[],
  values: Float32Array | Float64Array | BigInt64Array,
): ProtobufMessage {
  const message = new ProtobufMessage();
  for (const size of shape) message.integer(TENSOR.dimension, size);
  const type = values instanceof Float32Array ? FLOAT : values instanceof Float64Array ? DOUBLE : INT64;
  return message
    .integer(TENSOR.type, type)
    .text(TENSOR.name, name)
    .bytes(TENSOR.data, new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
}

/** An input or output of [batch x columns]. */
function value(name: string, type: number, columns: number): ProtobufMessage {
  const dimensions = new ProtobufMessage()
    .message(SHAPE.dimension, new ProtobufMessage().text(DIMENSION.symbol, 'batch'))
    .message(SHAPE.dimension, new ProtobufMessage().integer(DIMENSION.size, columns));
  const tensorType = new ProtobufMessage()
    .integer(TENSOR_TYPE.element, type)
    .message(TENSOR_TYPE.shape, dimensions);
  return new ProtobufMessage()
    .text(VALUE.name, name)
    .message(VALUE.type, new ProtobufMessage().message(TYPE.tensor, tensorType));
}
