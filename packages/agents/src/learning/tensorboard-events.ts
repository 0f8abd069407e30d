import { ProtobufMessage } from './protobuf-message.ts';

/** Fields of `tensorflow.Event` and of what it holds (tensorflow/core/util/event.proto, framework/summary.proto). */
const EVENT = { wallTime: 1, step: 2, fileVersion: 3, summary: 5, sessionLog: 7 } as const;
const SUMMARY = { value: 1 } as const;
const SUMMARY_VALUE = { tag: 1, simpleValue: 2 } as const;
const SESSION_LOG = { status: 1 } as const;
/** `SessionLog.SessionStatus`. */
const START = 1;

/** Scalars of one step of a run. */
export interface ScalarEvent {
  /** Seconds since 1970. */
  readonly wallTime: number;
  readonly step: number;
  /** Values by their tag: `losses/policy`, say. */
  readonly scalars: Readonly<Record<string, number>>;
}

/** The record that opens an event file. `wallTime` is in seconds since 1970. */
export function eventFileHeader(wallTime: number): Uint8Array {
  return record(
    new ProtobufMessage().double(EVENT.wallTime, wallTime).text(EVENT.fileVersion, 'brain.Event:2').encode(),
  );
}

/**
 * A record that says that a run starts, or goes on, with `step`: TensorBoard forgets what earlier files of the folder tell
 * of this step and of those after it.
 */
export function startRecord({ wallTime, step }: Omit<ScalarEvent, 'scalars'>): Uint8Array {
  const event = new ProtobufMessage()
    .double(EVENT.wallTime, wallTime)
    .integer(EVENT.step, step)
    .message(EVENT.sessionLog, new ProtobufMessage().integer(SESSION_LOG.status, START));
  return record(event.encode());
}

/** A record with scalars, to be appended to an event file. */
export function scalarRecord({ wallTime, step, scalars }: ScalarEvent): Uint8Array {
  const summary = new ProtobufMessage();
  for (const [tag, value] of Object.entries(scalars)) {
    const entry = new ProtobufMessage().text(SUMMARY_VALUE.tag, tag).float(SUMMARY_VALUE.simpleValue, value);
    summary.message(SUMMARY.value, entry);
  }
  const event = new ProtobufMessage()
    .double(EVENT.wallTime, wallTime)
    .integer(EVENT.step, step)
    .message(EVENT.summary, summary);
  return record(event.encode());
}

/**
 * A TFRecord: length (u64), its masked CRC-32C, the data, its masked CRC-32C, all little-endian.
 * https://www.tensorflow.org/tutorials/load_data/tfrecord
 */
function record(data: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(data.length + 16);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, BigInt(data.length), true);
  view.setUint32(8, maskedChecksum(bytes.subarray(0, 8)), true);
  bytes.set(data, 12);
  view.setUint32(12 + data.length, maskedChecksum(data), true);
  return bytes;
}

function maskedChecksum(data: Uint8Array): number {
  const crc = crc32c(data);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

/** Castagnoli's polynomial, bits reversed. */
const POLYNOMIAL = 0x82f63b78;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
  return crc;
});

/** CRC-32C of RFC 3720. */
export function crc32c(data: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of data) crc = TABLE[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
