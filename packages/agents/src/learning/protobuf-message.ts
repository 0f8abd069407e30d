/** Wire types of protocol buffers. */
const VARINT = 0;
const LENGTH_DELIMITED = 2;

/**
 * Writes a message in the protocol buffers' wire format, field by field. A repeated field is written once for each value.
 * https://protobuf.dev/programming-guides/encoding
 */
export class ProtobufMessage {
  readonly #bytes: number[] = [];

  /** An `int64`, `int32` or `enum`, from 0 to 2^53 - 1. */
  integer(field: number, value: number): this {
    this.#tag(field, VARINT);
    this.#varint(value);
    return this;
  }

  text(field: number, value: string): this {
    return this.bytes(field, new TextEncoder().encode(value));
  }

  bytes(field: number, value: Uint8Array): this {
    this.#tag(field, LENGTH_DELIMITED);
    this.#varint(value.length);
    this.#append(value);
    return this;
  }

  message(field: number, value: ProtobufMessage): this {
    return this.bytes(field, value.encode());
  }

  encode(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }

  #tag(field: number, wireType: number): void {
    this.#varint(field * 8 + wireType);
  }

  #varint(value: number): void {
    let left = value;
    while (left >= 0x80) {
      this.#bytes.push((left % 0x80) + 0x80);
      left = Math.floor(left / 0x80);
    }
    this.#bytes.push(left);
  }

  #append(bytes: Uint8Array): void {
    for (const byte of bytes) this.#bytes.push(byte);
  }
}
