/** A frame as a client sends it. */
export interface ClientFrame {
  readonly opcode: number;
  readonly payload: Uint8Array;
  /** Whether it ends its message. Default true. */
  readonly isFinal?: boolean;
  /** Default zeros. */
  readonly mask?: Uint8Array;
}

/** The bytes of a client's frame. */
export function maskedFrame({
  opcode,
  payload,
  isFinal = true,
  mask = new Uint8Array(4),
}: ClientFrame): Buffer {
  const first = (isFinal ? 0x80 : 0) | opcode;
  const { length } = payload;
  const extended = Buffer.alloc(length < 126 ? 0 : length < 65_536 ? 2 : 8);
  if (extended.length === 2) extended.writeUInt16BE(length);
  if (extended.length === 8) extended.writeBigUInt64BE(BigInt(length));
  const short = extended.length === 0 ? length : extended.length === 2 ? 126 : 127;
  const masked = payload.map((byte, index) => byte ^ mask[index % 4]!);
  return Buffer.concat([Buffer.from([first, 0x80 | short]), extended, mask, masked]);
}
