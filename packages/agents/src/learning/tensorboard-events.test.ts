import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ProtobufMessage } from './protobuf-message.ts';
import { crc32c, eventFileHeader, scalarRecord, startRecord } from './tensorboard-events.ts';

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

describe('crc32c', () => {
  it('gives the checksums of RFC 3720', () => {
    assert.equal(crc32c(new Uint8Array(32)), 0x8a9136aa);
    assert.equal(crc32c(new Uint8Array(32).fill(0xff)), 0x62a8ab43);
    assert.equal(crc32c(Uint8Array.from({ length: 32 }, (_, i) => i)), 0x46dd794e);
  });
});

describe('an event file', () => {
  it('opens with its version, in a record whose checksums hold', () => {
    const bytes = eventFileHeader(1.5);
    const view = new DataView(bytes.buffer);
    const length = Number(view.getBigUint64(0, true));
    assert.equal(bytes.length, length + 16);
    assert.match(Buffer.from(bytes).toString('latin1'), /brain\.Event:2/);
    for (const [at, data] of [
      [8, bytes.subarray(0, 8)],
      [12 + length, bytes.subarray(12, 12 + length)],
    ] as const) {
      const unmasked = (view.getUint32(at, true) - 0xa282ead8) >>> 0;
      assert.equal(((unmasked >>> 17) | (unmasked << 15)) >>> 0, crc32c(data));
    }
  });

  it('says with which step a run goes on', () => {
    const event = Buffer.from(startRecord({ wallTime: 2, step: 300 }).subarray(12, -4));
    // wall_time = 2.0, step = 300, session_log { status: START }
    assert.equal(event.toString('hex'), '09000000000000004010ac023a020801');
  });

  it('has the scalars of a step by their tags', () => {
    const bytes = scalarRecord({ wallTime: 2, step: 300, scalars: { 'a/b': 0.5 } });
    const event = Buffer.from(bytes.subarray(12, -4));
    // wall_time = 2.0, step = 300, summary { value { tag: "a/b" simple_value: 0.5 } }
    assert.equal(event.toString('hex'), '09000000000000004010ac022a0c0a0a0a03612f62150000003f');
  });
});
