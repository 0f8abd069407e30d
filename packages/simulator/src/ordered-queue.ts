/** Items of which the one that comes first is taken first. Most are added behind all others; the list is searched for the place of the rest. */
export class OrderedQueue<Item> {
  private readonly items: Item[];
  /** Items at the front of the list that were taken. */
  private taken = 0;
  private readonly comesFirst: (a: Item, b: Item) => boolean;

  /** @param items In order, as `list` gives them. */
  constructor(comesFirst: (a: Item, b: Item) => boolean, items: readonly Item[] = []) {
    this.comesFirst = comesFirst;
    this.items = items.slice();
  }

  get size(): number {
    return this.items.length - this.taken;
  }

  /** The item that comes first; only when there is one. */
  get first(): Item {
    return this.items[this.taken];
  }

  list(): Item[] {
    return this.items.slice(this.taken);
  }

  add(item: Item): void {
    const { items, comesFirst } = this;
    let low = this.taken;
    let high = items.length;
    if (low === high || !comesFirst(item, items[high - 1])) low = high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (comesFirst(item, items[middle])) high = middle;
      else low = middle + 1;
    }
    if (low === items.length) items.push(item);
    else items.splice(low, 0, item);
  }

  /** Takes the item that comes first; only when there is one. */
  take(): Item {
    const item = this.items[this.taken++];
    if (2 * this.taken >= this.items.length) {
      this.items.splice(0, this.taken);
      this.taken = 0;
    }
    return item;
  }
}
