import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeSafetensors, encodeSafetensors, type TensorFile } from './safetensors.ts';

const file: TensorFile = {
  tensors: {
    'actor.0.bias': { shape: [3], values: Float32Array.of(1, -2, 0.5) },
    mean: { shape: [1, 2], values: Float64Array.of(Math.PI, 1e300) },
    none: { shape: [0], values: new Float32Array(0) },
  },
  metadata: { task: 'static_workload', note: 'ünïcode' },
};

/** A file of this header and this many bytes of values. */
function fileOf(header: unknown, dataBytes = 0): Uint8Array {
  const text = new TextEncoder().encode(typeof header === 'string' ? header : JSON.stringify(header));
  const bytes = new Uint8Array(8 + text.length + dataBytes);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
  bytes.set(text, 8);
  return bytes;
}

describe('safetensors', () => {
  it('reads what it wrote', () => {
    assert.deepEqual(decodeSafetensors(encodeSafetensors(file)), file);
  });

  it('writes the format, byte by byte', () => {
    const bytes = encodeSafetensors({
      tensors: { a: { shape: [1], values: Float32Array.of(1) } },
      metadata: {},
    });
    const header = '{"__metadata__":{},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}';
    const padded = header.padEnd(Math.ceil(header.length / 8) * 8);
    assert.equal(new DataView(bytes.buffer).getBigUint64(0, true), BigInt(padded.length));
    assert.equal(new TextDecoder().decode(bytes.subarray(8, 8 + padded.length)), padded);
    assert.deepEqual([...bytes.subarray(8 + padded.length)], [0, 0, 0x80, 0x3f]);
  });

  it('aligns 64-bit values', () => {
    const bytes = encodeSafetensors(file);
    const headerBytes = Number(new DataView(bytes.buffer).getBigUint64(0, true));
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + headerBytes)));
    assert.equal((8 + headerBytes + header.mean.data_offsets[0]) % 8, 0);
  });

  it('reads from the middle of a larger buffer', () => {
    const bytes = encodeSafetensors(file);
    const larger = new Uint8Array(bytes.length + 3);
    larger.set(bytes, 3);
    assert.deepEqual(decodeSafetensors(larger.subarray(3)), file);
    assert.deepEqual(decodeSafetensors(Buffer.from(larger).subarray(3)), file);
  });

  it('says what is wrong with a file', () => {
    const tensor = (fields: object) => ({ a: { dtype: 'F32', shape: [2], data_offsets: [0, 8], ...fields } });
    for (const [bytes, message] of [
      [new Uint8Array(3), /Expected at least 8 bytes, got 3/],
      [encodeSafetensors(file).subarray(0, 40), /the file ends before/],
      [new Uint8Array(16).fill(255), /the file ends before/],
      [fileOf('{"a'), /Expected the header to be JSON/],
      [fileOf([1]), /Expected the header to be a JSON object/],
      [fileOf({ a: 1 }), /Expected tensor `a` to have a shape/],
      [fileOf(tensor({ shape: [-1] })), /Expected tensor `a` to have a shape/],
      [fileOf(tensor({ dtype: 'BF16' }), 8), /Expected tensor `a` to be F32 or F64, got BF16/],
      [fileOf(tensor({}), 4), /Expected tensor `a` to hold 2 values within the file, got bytes 0 to 8/],
      [fileOf(tensor({ shape: [3] }), 8), /Expected tensor `a` to hold 3 values/],
    ] as const) {
      assert.throws(() => decodeSafetensors(bytes), { code: 'TENSOR_FILE', message });
    }
  });
});
