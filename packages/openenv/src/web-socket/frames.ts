import { CLOSE_CODES } from './close-code.ts';
import { OPCODES } from './opcode.ts';

const FINAL = 0x80;

/**
 * A message of text. ASCII, as JSON mostly is, comes as a string to be written as Latin-1: that takes no buffer and no
 * second piece to be written.
 */
export function textFrame(text: string): string | Buffer {
  const bytes = Buffer.byteLength(text);
  if (bytes === text.length && bytes < 65_536) return asciiHead(bytes) + text;
  const head = frameHead(OPCODES.text, bytes);
  const frame = Buffer.allocUnsafe(head.length + bytes);
  head.copy(frame);
  frame.write(text, head.length);
  return frame;
}

/** What goes before the bytes of a binary message. */
export function binaryHead(bytes: number): Buffer {
  return frameHead(OPCODES.binary, bytes);
}

/** A ping, or a pong with the ping's payload, which has at most 125 bytes. */
export function controlFrame(
  opcode: typeof OPCODES.ping | typeof OPCODES.pong | typeof OPCODES.close,
  payload: Uint8Array = new Uint8Array(),
): Buffer {
  return Buffer.concat([frameHead(opcode, payload.length), payload]);
}

/** The end of a socket. With code 1005, which is never sent, the frame has neither code nor reason. */
export function closeFrame(code: number, reason: string): Buffer {
  if (code === CLOSE_CODES.none) return controlFrame(OPCODES.close);
  const payload = Buffer.from(`  ${reason}`);
  payload.writeUInt16BE(code, 0);
  return controlFrame(OPCODES.close, payload);
}

function asciiHead(bytes: number): string {
  return bytes < 126
    ? String.fromCharCode(FINAL | OPCODES.text, bytes)
    : String.fromCharCode(FINAL | OPCODES.text, 126, bytes >> 8, bytes & 0xff);
}

function frameHead(opcode: number, bytes: number): Buffer {
  if (bytes < 126) return Buffer.from([FINAL | opcode, bytes]);
  const head = Buffer.alloc(bytes < 65_536 ? 4 : 10);
  head[0] = FINAL | opcode;
  head[1] = bytes < 65_536 ? 126 : 127;
  if (bytes < 65_536) head.writeUInt16BE(bytes, 2);
  else head.writeBigUInt64BE(BigInt(bytes), 2);
  return head;
}
