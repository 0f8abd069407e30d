import { EnvironmentError } from '@servegym/openenv/definition';
import type { FloatArray } from './kernels.ts';

/** Named arrays with a shape, and a dictionary of texts. */
export type TensorFile = ReturnType<typeof decodeSafetensors>;

/** Row-major. */
export interface Tensor {
  readonly shape: readonly number[];
  readonly values: FloatArray;
}

interface TensorEntry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

const LENGTH_BYTES = 8;
/** The header is padded to it, so that the values are aligned. */
const ALIGNMENT = 8;

/** Writes the safetensors format: length of the header (u64), header (JSON), values, all little-endian. */
export function encodeSafetensors({ tensors, metadata }: TensorFile): Uint8Array {
  const header: Record<string, TensorEntry | Record<string, string>> = { __metadata__: { ...metadata } };
  let dataBytes = 0;
  // Wide values first, so that all are aligned.
  const entries = Object.entries(tensors).sort(
    ([, a], [, b]) => b.values.BYTES_PER_ELEMENT - a.values.BYTES_PER_ELEMENT,
  );
  for (const [name, { shape, values }] of entries) {
    const end = dataBytes + values.byteLength;
    const dtype = values.BYTES_PER_ELEMENT === 8 ? 'F64' : 'F32';
    header[name] = { dtype, shape: [...shape], data_offsets: [dataBytes, end] };
    dataBytes = end;
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const headerBytes = Math.ceil(text.length / ALIGNMENT) * ALIGNMENT;
  const file = new Uint8Array(LENGTH_BYTES + headerBytes + dataBytes);
  new DataView(file.buffer).setBigUint64(0, BigInt(headerBytes), true);
  file.fill(' '.charCodeAt(0), LENGTH_BYTES, LENGTH_BYTES + headerBytes);
  file.set(text, LENGTH_BYTES);
  let at = LENGTH_BYTES + headerBytes;
  for (const [, { values }] of entries) {
    file.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), at);
    at += values.byteLength;
  }
  return file;
}

/** Reads the safetensors format, tensors of 32-bit and 64-bit floats. @throws EnvironmentError `TENSOR_FILE` */
export function decodeSafetensors(file: Uint8Array) {
  if (file.length < LENGTH_BYTES) fail(`Expected at least ${LENGTH_BYTES} bytes, got ${file.length}`);
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const headerBytes = Number(view.getBigUint64(0, true));
  const dataStart = LENGTH_BYTES + headerBytes;
  if (dataStart > file.length) fail(`Expected a header of ${headerBytes} bytes, the file ends before`);
  const { __metadata__: metadata, ...entries } = readHeader(file.subarray(LENGTH_BYTES, dataStart));
  const tensors: Record<string, Tensor> = {};
  for (const [name, entry] of Object.entries(entries)) {
    tensors[name] = readTensor(name, entry, file.subarray(dataStart));
  }
  return { tensors, metadata: isRecord(metadata) ? (metadata as Record<string, string>) : {} };
}

function readHeader(bytes: Uint8Array): Record<string, unknown> {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    fail('Expected the header to be JSON');
  }
  return isRecord(header) ? header : fail('Expected the header to be a JSON object');
}

function readTensor(name: string, entry: unknown, data: Uint8Array): Tensor {
  const { dtype, shape, data_offsets: offsets } = (isRecord(entry) ? entry : {}) as Partial<TensorEntry>;
  if (!isCounts(shape) || !isCounts(offsets) || offsets.length !== 2) {
    fail(`Expected tensor \`${name}\` to have a shape and two offsets`);
  }
  const Values = dtype === 'F32' ? Float32Array : dtype === 'F64' ? Float64Array : undefined;
  if (Values === undefined) fail(`Expected tensor \`${name}\` to be F32 or F64, got ${dtype}`);
  const [start, end] = offsets;
  const length = shape.reduce((product, size) => product * size, 1);
  if (end > data.length || end - start !== length * Values.BYTES_PER_ELEMENT) {
    fail(
      `Expected tensor \`${name}\` to hold ${length} values within the file, got bytes ${start} to ${end}`,
    );
  }
  // Not `slice`: that of a `Buffer` does not copy.
  return { shape, values: new Values(Uint8Array.from(data.subarray(start, end)).buffer) };
}

function isCounts(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((entry) => Number.isSafeInteger(entry) && entry >= 0);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fail(problem: string): never {
  throw new EnvironmentError('TENSOR_FILE', problem);
}
