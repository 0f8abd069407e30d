/** A copy of a column with room for `length` entries. */
export function enlarged<Column extends Float64Array | Int32Array | Uint8Array>(
  column: Column,
  length: number,
): Column {
  const larger = new (column.constructor as new (length: number) => Column)(length);
  larger.set(column);
  return larger;
}

/** A reused list of slots: emptying it keeps its storage, which `array.length = 0` does not. */
export class SlotBuffer {
  slots: Int32Array = new Int32Array(64);
  count = 0;

  push(slot: number): void {
    if (this.count === this.slots.length) this.slots = enlarged(this.slots, this.count * 2);
    this.slots[this.count++] = slot;
  }

  has(slot: number): boolean {
    for (let i = 0; i < this.count; i++) if (this.slots[i] === slot) return true;
    return false;
  }

  toArray(): number[] {
    return Array.from(this.slots.subarray(0, this.count));
  }

  set(slots: readonly number[]): void {
    this.count = 0;
    for (const slot of slots) this.push(slot);
  }
}
