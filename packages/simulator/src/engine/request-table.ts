/** States of a request. */
const FREE = 0;
export const FUTURE = 1;
export const WAITING = 2;
export const PREFILLING = 3;
export const DECODING = 4;
/** All of its prefill is scheduled in the iteration under way. */
export const PREFILLED = 5;
/** Its last token has come, and the iteration that is scheduled already counts with its place and its blocks. */
export const ENDED = 6;
/** Among the future requests: the front end has not taken it up, and `visible` is its arrival. */
export const ARRIVING = 7;

// What the fields are before there is memory: typed arrays from the start, which the compiler then need not check.
const NO_FLOATS = new Float64Array(0);
const NO_INTS = new Int32Array(0);
const NO_BYTES = new Uint8Array(0);
/** Of fields that tell nothing between iterations, or that a restored engine makes anew. */
const PASSING_INTS = new Int32Array(0);

/** The fields of requests, by slot. */
class RequestColumns {
  /** Tick of arrival at the server. */
  arrival: Float64Array = NO_FLOATS;
  /** Tick at which the scheduler first sees it. */
  visible: Float64Array = NO_FLOATS;
  /** Tick at which the first iteration that had it began; `NOT_YET` before it. */
  scheduled: Float64Array = NO_FLOATS;
  /** Tick of the first token; `NOT_YET` before it. */
  firstToken: Float64Array = NO_FLOATS;
  /** Tick of the last token before the request was preempted, transferred or complete. */
  lastToken: Float64Array = NO_FLOATS;
  /** Position in the order in which the scheduler saw them, which is the order of the queue; `NOT_YET` before. */
  order: Float64Array = NO_FLOATS;
  /** Position in the order of admission, which is the order of the running list. */
  admitted: Float64Array = NO_FLOATS;
  /** The caller's number for the request. */
  id: Int32Array = NO_INTS;
  input: Int32Array = NO_INTS;
  output: Int32Array = NO_INTS;
  /** While decoding: emitted tokens minus the engine's decode counter. Otherwise: emitted tokens. */
  generatedOffset: Int32Array = NO_INTS;
  /** Tokens computed so far, until decodes are in a batch; of a sequence that decodes, those that could be cached. */
  computed: Int32Array = NO_INTS;
  /** KV blocks held, except for lockstep decodes, where the context length gives them. */
  blocks: Int32Array = NO_INTS;
  /** Blocks of `blocks` that other requests can find in the prefix cache; negative when they can find none. */
  namedBlocks: Int32Array = NO_INTS;
  /** Blocks behind them that the prefix cache kept for this request when it was preempted. */
  ownBlocks: Int32Array = NO_INTS;
  preemptions: Int32Array = NO_INTS;
  next: Int32Array = NO_INTS;
  prev: Int32Array = NO_INTS;
  /** Tokens that the iteration under way gives it where it visits every request; 0 between iterations. */
  given: Int32Array = PASSING_INTS;
  /** Tokens that the last iteration gave it, where it visits every request. */
  inFlight: Int32Array = NO_INTS;
  /** Verify steps so far (speculative decoding). */
  verifySteps: Int32Array = NO_INTS;
  /** Neighbours in a ring of the completion wheel. */
  nextInRing: Int32Array = PASSING_INTS;
  prevInRing: Int32Array = PASSING_INTS;
  /** Number of its LoRA adapter; 0 is the base model. */
  adapter: Int32Array = NO_INTS;
  /** 0 is the most urgent class. */
  priority: Uint8Array = NO_BYTES;
  status: Uint8Array = NO_BYTES;
  /** 1 when the KV of the prompt comes from another engine and need not be computed. */
  transferred: Uint8Array = NO_BYTES;
  /** Under verification ahead, tokens that the last iteration emitted, which the next was composed without. */
  unseen: Uint8Array = NO_BYTES;
  /** Of the slots that the last iteration gave it, those beyond the tokens it emitted. */
  rejected: Uint8Array = NO_BYTES;
  /** Draft tokens that its next verify step has, where they depend on the batch size. */
  drafts: Uint8Array = NO_BYTES;
}

interface ColumnKind {
  new (memory: ArrayBuffer, offset: number, length: number): Float64Array | Int32Array | Uint8Array;
  readonly BYTES_PER_ELEMENT: number;
}
/** In the order of memory: long elements first, and those last that a snapshot lacks. */
const KINDS: readonly (readonly [none: ArrayLike<number>, Kind: ColumnKind])[] = [
  [NO_FLOATS, Float64Array],
  [NO_INTS, Int32Array],
  [NO_BYTES, Uint8Array],
  [PASSING_INTS, Int32Array],
];
const FIELDS = KINDS.flatMap(([none, Kind]) => {
  const columns = Object.entries(new RequestColumns()).filter(([, column]) => column === none);
  return columns.map(([name]) => ({ name, Kind, lasts: none !== PASSING_INTS }));
});
const bytesOf = (fields: typeof FIELDS) => fields.reduce((sum, { Kind }) => sum + Kind.BYTES_PER_ELEMENT, 0);
/** Bytes of one slot over all fields, and over those that a snapshot holds. */
const SLOT_BYTES = bytesOf(FIELDS);
const LASTING_BYTES = bytesOf(FIELDS.filter(({ lasts }) => lasts));

/**
 * The requests that an engine knows of, one slot each, as a structure of arrays. Slots are reused, the lowest ones
 * first in practice, so that the table stays as small as the largest number of requests alive at once.
 */
export class RequestTable extends RequestColumns {
  capacity = 0;
  /** All fields one behind the other, so that a snapshot is one copy. */
  private memory = new ArrayBuffer(0);
  private columns: InstanceType<ColumnKind>[] = [];
  private highWater = 0;
  private freeHead = -1;

  constructor(capacity = 64) {
    super();
    this.resize(capacity);
  }

  /** A free slot. Its fields hold whatever its last user left. */
  allocate(): number {
    if (this.freeHead >= 0) {
      const slot = this.freeHead;
      this.freeHead = this.next[slot];
      return slot;
    }
    if (this.highWater === this.capacity) this.resize(this.capacity * 2);
    return this.highWater++;
  }

  free(slot: number): void {
    this.status[slot] = FREE;
    this.next[slot] = this.freeHead;
    this.freeHead = slot;
  }

  /** Moves the origin of every stored time by `ticks`. */
  shiftClock(ticks: number): void {
    for (let slot = 0; slot < this.highWater; slot++) {
      this.arrival[slot] -= ticks;
      this.visible[slot] -= ticks;
      this.lastToken[slot] -= ticks;
      this.firstToken[slot] -= ticks;
      this.scheduled[slot] -= ticks;
    }
  }

  /** A copy of the table, but for the passing fields. */
  snapshot() {
    const { capacity, highWater, freeHead } = this;
    return { memory: this.memory.slice(0, capacity * LASTING_BYTES), capacity, highWater, freeHead };
  }

  restore({ memory, capacity, highWater, freeHead }: ReturnType<RequestTable['snapshot']>): void {
    if (capacity !== this.capacity) this.layOut(new ArrayBuffer(capacity * SLOT_BYTES), capacity);
    new Uint8Array(this.memory).set(new Uint8Array(memory));
    this.highWater = highWater;
    this.freeHead = freeHead;
  }

  private resize(capacity: number): void {
    const old = this.columns;
    this.layOut(new ArrayBuffer(capacity * SLOT_BYTES), capacity);
    for (const [i, column] of old.entries()) this.columns[i].set(column);
  }

  private layOut(memory: ArrayBuffer, capacity: number): void {
    let offset = 0;
    this.columns = FIELDS.map(({ name, Kind }) => {
      const column = new Kind(memory, offset, capacity);
      offset += capacity * Kind.BYTES_PER_ELEMENT;
      Object.assign(this, { [name]: column });
      return column;
    });
    this.memory = memory;
    this.capacity = capacity;
  }
}
