import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ProtobufMessage } from './protobuf-message.ts';

describe('ProtobufMessage', () => {
  it('writes the examples of the encoding guide', () => {
    const hex = (message: ProtobufMessage) => Buffer.from(message.encode()).toString('hex');
    assert.equal(hex(new ProtobufMessage().integer(1, 150)), '089601');
    assert.equal(hex(new ProtobufMessage().text(2, 'testing')), '120774657374696e67');
    assert.equal(hex(new ProtobufMessage().message(3, new ProtobufMessage().integer(1, 150))), '1a03089601');
  });

  it('writes floats in little-endian order, and integers beyond 32 bits', () => {
    const bytes = new ProtobufMessage()
      .double(1, -2.5)
      .float(16, 0.5)
      .integer(2, 2 ** 53 - 1)
      .encode();
    const view = new DataView(bytes.buffer);
    assert.equal(bytes[0], 1 * 8 + 1);
    assert.equal(view.getFloat64(1, true), -2.5);
    assert.deepEqual([...bytes.subarray(9, 11)], [0x85, 0x01]);
    assert.equal(view.getFloat32(11, true), 0.5);
    assert.deepEqual([...bytes.subarray(15)], [16, 255, 255, 255, 255, 255, 255, 255, 15]);
  });
});
