const NOTHING: Buffer = Buffer.alloc(0);

/** Bytes that come in pieces. Room grows by doubling, so that many small pieces are not copied again and again. */
export class GrowingBytes {
  #room = NOTHING;
  length = 0;

  append(piece: Buffer): void {
    const length = this.length + piece.length;
    if (length > this.#room.length) {
      const room = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#room.length));
      this.#room.copy(room, 0, 0, this.length);
      this.#room = room;
    }
    piece.copy(this.#room, this.length);
    this.length = length;
  }

  /** What is there. Valid until the next call of anything here. */
  get bytes(): Buffer {
    return this.#room.subarray(0, this.length);
  }

  /** Hands over what is there and begins anew, so that it stays valid. */
  take(): Buffer {
    const { bytes } = this;
    this.#room = NOTHING;
    this.length = 0;
    return bytes;
  }
}
