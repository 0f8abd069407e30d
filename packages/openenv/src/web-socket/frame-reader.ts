import { isUtf8 } from 'node:buffer';
import { CLOSE_CODES, isSendableCode } from './close-code.ts';
import { FrameError } from './frame-error.ts';
import { GrowingBytes } from './growing-bytes.ts';
import { OPCODES } from './opcode.ts';

const MOST_CONTROL_BYTES = 125;
const MASK_BYTES = 4;

/** What a reader has found. Buffers are the receiver's own. */
export interface FrameReceiver {
  onMessage(data: string | Buffer): void;
  onPing(payload: Buffer): void;
  onPong(): void;
  /** The last thing that a reader tells. `code` is 1005 when the frame had none. */
  onClose(code: number): void;
}

/** Reads the frames that a WebSocket client sends (RFC 6455, without extensions), however the network has cut them. */
export class FrameReader {
  readonly #receiver: FrameReceiver;
  readonly #maxMessageBytes: number;
  /** What has come of a frame that is not whole yet. */
  readonly #rest = new GrowingBytes();
  /** What has come of a message in fragments. */
  readonly #fragments = new GrowingBytes();
  /** What the message in fragments is; `continuation` between messages. */
  #opcode: number = OPCODES.continuation;
  #isOver = false;

  constructor(receiver: FrameReceiver, maxMessageBytes: number) {
    this.#receiver = receiver;
    this.#maxMessageBytes = maxMessageBytes;
  }

  /**
   * Takes what has come next; the chunk is the reader's from then on. What comes after a close frame, or after an error,
   * is dropped.
   * @throws FrameError
   */
  read(chunk: Buffer): void {
    if (this.#isOver) return;
    const isBehindRest = this.#rest.length > 0;
    if (isBehindRest) this.#rest.append(chunk);
    const data = isBehindRest ? this.#rest.bytes : chunk;
    let offset = 0;
    try {
      for (let end = this.#readFrame(data, 0); end !== null; end = this.#readFrame(data, offset))
        offset = end;
    } catch (error) {
      if (error instanceof FrameError) this.#end();
      throw error;
    }
    if (this.#isOver || (isBehindRest && offset === 0)) return;
    // What was given out may be part of the old rest, which is left as it is.
    if (isBehindRest) this.#rest.take();
    if (offset < data.length) this.#rest.append(data.subarray(offset));
  }

  /** Reads the frame at an offset and returns where the next one begins; `null` when it is not whole yet. */
  #readFrame(data: Buffer, offset: number): number | null {
    if (this.#isOver || data.length < offset + 2) return null;
    const first = data[offset]!;
    const second = data[offset + 1]!;
    const opcode = first & 0x0f;
    const isFinal = (first & 0x80) !== 0;
    const isControl = opcode >= OPCODES.close;
    if ((first & 0x70) !== 0) throw broken('reserved bits must be clear');
    if ((second & 0x80) === 0) throw broken('frames of a client must be masked');
    if (isControl) requireControl(opcode, isFinal, second & 0x7f);
    else this.#requireData(opcode);
    const length = payloadLength(data, offset);
    if (length === null) return null;
    if (!isControl && this.#fragments.length + length > this.#maxMessageBytes) {
      throw new FrameError(CLOSE_CODES.tooBig, `a message of more than ${this.#maxMessageBytes} bytes`);
    }
    const begin = offset + headBytes(second & 0x7f) + MASK_BYTES;
    const end = begin + length;
    if (data.length < end) return null;
    const isAscii = unmask(data, begin, end);
    if (isControl) this.#takeControl(opcode, data.subarray(begin, end));
    else if (isFinal && opcode !== OPCODES.continuation) this.#take(opcode, data, begin, end, isAscii);
    else this.#takeFragment(opcode, isFinal, data.subarray(begin, end));
    return end;
  }

  #requireData(opcode: number): void {
    const isInside = this.#opcode !== OPCODES.continuation;
    if (opcode > OPCODES.binary) throw broken(`unknown opcode ${opcode}`);
    if ((opcode === OPCODES.continuation) !== isInside) {
      throw broken(isInside ? 'a message began inside another' : 'a fragment without its beginning');
    }
  }

  #take(opcode: number, data: Buffer, begin: number, end: number, isAscii: boolean): void {
    if (opcode === OPCODES.binary) this.#receiver.onMessage(data.subarray(begin, end));
    // Far cheaper to make than a string of UTF-8, and the same.
    else if (isAscii) this.#receiver.onMessage(data.toString('latin1', begin, end));
    else this.#receiver.onMessage(utf8Text(data.subarray(begin, end)));
  }

  #takeFragment(opcode: number, isFinal: boolean, payload: Buffer): void {
    if (opcode !== OPCODES.continuation) this.#opcode = opcode;
    this.#fragments.append(payload);
    if (!isFinal) return;
    const isText = this.#opcode === OPCODES.text;
    this.#opcode = OPCODES.continuation;
    const whole = this.#fragments.take();
    this.#receiver.onMessage(isText ? utf8Text(whole) : whole);
  }

  #takeControl(opcode: number, payload: Buffer): void {
    if (opcode === OPCODES.ping) this.#receiver.onPing(payload);
    else if (opcode === OPCODES.pong) this.#receiver.onPong();
    else this.#takeClose(payload);
  }

  #takeClose(payload: Buffer): void {
    const code = payload.length === 0 ? CLOSE_CODES.none : payload.readUInt16BE(0);
    if (payload.length > 0 && !isSendableCode(code)) throw broken(`invalid close code ${code}`);
    utf8Text(payload.subarray(2));
    this.#end();
    this.#receiver.onClose(code);
  }

  #end(): void {
    this.#isOver = true;
    this.#rest.take();
    this.#fragments.take();
  }
}

/** Bytes before the mask. */
function headBytes(short: number): number {
  return short < 126 ? 2 : short === 126 ? 4 : 10;
}

/** The bytes of the payload of the frame at an offset; `null` when its head is not whole yet. */
function payloadLength(data: Buffer, offset: number): number | null {
  const short = data[offset + 1]! & 0x7f;
  if (short < 126) return short;
  if (data.length < offset + headBytes(short)) return null;
  return short === 126 ? data.readUInt16BE(offset + 2) : Number(data.readBigUInt64BE(offset + 2));
}

/** @param short The length in the second byte of the frame: 126 and 127 say that it is longer. */
function requireControl(opcode: number, isFinal: boolean, short: number): void {
  if (opcode > OPCODES.pong) throw broken(`unknown opcode ${opcode}`);
  if (!isFinal) throw broken('a control frame in fragments');
  if (short > MOST_CONTROL_BYTES || (opcode === OPCODES.close && short === 1)) {
    throw broken('a control frame of a length that it cannot have');
  }
}

/** Takes the mask, which lies before it, off a payload. Returns whether all of it is ASCII. */
function unmask(data: Buffer, begin: number, end: number): boolean {
  const mask0 = data[begin - 4]!;
  const mask1 = data[begin - 3]!;
  const mask2 = data[begin - 2]!;
  const mask3 = data[begin - 1]!;
  let seen = 0;
  let index = begin;
  for (; index + 3 < end; index += 4) {
    const byte0 = data[index]! ^ mask0;
    const byte1 = data[index + 1]! ^ mask1;
    const byte2 = data[index + 2]! ^ mask2;
    const byte3 = data[index + 3]! ^ mask3;
    data[index] = byte0;
    data[index + 1] = byte1;
    data[index + 2] = byte2;
    data[index + 3] = byte3;
    seen |= byte0 | byte1 | byte2 | byte3;
  }
  for (; index < end; index++) {
    const byte = data[index]! ^ data[begin - 4 + ((index - begin) & 3)]!;
    data[index] = byte;
    seen |= byte;
  }
  return seen < 0x80;
}

function utf8Text(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new FrameError(CLOSE_CODES.invalidText, 'text that is no UTF-8');
  return bytes.toString();
}

function broken(what: string): FrameError {
  return new FrameError(CLOSE_CODES.protocolError, what);
}
