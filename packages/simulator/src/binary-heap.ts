/** Items of which the one that comes first is taken first. */
export class BinaryHeap<Item> {
  private readonly items: Item[] = [];
  private readonly comesFirst: (a: Item, b: Item) => boolean;

  constructor(comesFirst: (a: Item, b: Item) => boolean) {
    this.comesFirst = comesFirst;
  }

  get size(): number {
    return this.items.length;
  }

  /** The item that comes first; only when there is one. */
  get first(): Item {
    return this.items[0];
  }

  push(item: Item): void {
    const { items } = this;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.comesFirst(items[parent], item)) break;
      items[at] = items[parent];
      at = parent;
    }
    items[at] = item;
  }

  /** Takes the item that comes first; only when there is one. */
  take(): Item {
    const { items } = this;
    const first = items[0];
    const last = items.pop() as Item;
    if (items.length === 0) return first;
    let at = 0;
    for (let child = 1; child < items.length; child = 2 * at + 1) {
      if (child + 1 < items.length && this.comesFirst(items[child + 1], items[child])) child++;
      if (this.comesFirst(last, items[child])) break;
      items[at] = items[child];
      at = child;
    }
    items[at] = last;
    return first;
  }
}
