/** Numbers that come one by one: a typed array, as plain ones take twice the memory in a day of millions of requests. */
export class Column<Values extends Int32Array | Uint8Array | Float64Array> {
  #values: Values;
  length = 0;

  constructor(empty: Values) {
    this.#values = empty;
  }

  push(value: number): void {
    if (this.length === this.#values.length) {
      const Type = this.#values.constructor as new (length: number) => Values;
      const grown = new Type(Math.max(1024, Math.ceil(1.5 * this.length)));
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.length++] = value;
  }

  get(at: number): number {
    return this.#values[at];
  }

  set(at: number, value: number): void {
    this.#values[at] = value;
  }

  /** The pushed values. */
  get values(): Values {
    return this.#values.subarray(0, this.length) as Values;
  }
}
