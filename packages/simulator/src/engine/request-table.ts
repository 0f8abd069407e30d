/** Where a request is. */
export const FREE = 0;
export const FUTURE = 1;
export const WAITING = 2;
export const PREFILLING = 3;
export const DECODING = 4;

const FLOAT_FIELDS = ['arrival', 'visible', 'firstToken', 'lastToken', 'order', 'admitted'] as const;
const INT_FIELDS = [
  'id',
  'input',
  'output',
  'generatedOffset',
  'computed',
  'blocks',
  'sharedBlocks',
  'preemptions',
  'next',
  'prev',
  'given',
] as const;
const BYTE_FIELDS = ['priority', 'status', 'transferred'] as const;

/** A copy of the live part of a table. */
export interface RequestTableSnapshot {
  readonly floats: readonly Float64Array[];
  readonly ints: readonly Int32Array[];
  readonly bytes: readonly Uint8Array[];
  readonly highWater: number;
  readonly freeHead: number;
}

/**
 * The requests that an engine knows of, one slot each, as a structure of arrays. Slots are reused, the lowest ones
 * first in practice, so that the table stays as small as the largest number of requests alive at once.
 */
export class RequestTable {
  /** Tick of arrival at the server. */
  arrival: Float64Array;
  /** Tick at which the scheduler first sees it. */
  visible: Float64Array;
  /** Tick of the first token; -1 before it. */
  firstToken: Float64Array;
  /** Tick of the last token before the request was preempted or transferred. */
  lastToken: Float64Array;
  /** Position in the order of submission, which is the order of the queue. */
  order: Float64Array;
  /** Position in the order of admission, which is the order of the running list. */
  admitted: Float64Array;
  /** The caller's number for the request. */
  id: Int32Array;
  input: Int32Array;
  output: Int32Array;
  /** While decoding: emitted tokens minus the engine's decode counter. Otherwise: emitted tokens. */
  generatedOffset: Int32Array;
  /** While prefilling: tokens computed so far. */
  computed: Int32Array;
  /** KV blocks held, except for lockstep decodes, where the context length gives them. */
  blocks: Int32Array;
  /** Blocks of `blocks` that the prefix cache may share with other requests. */
  sharedBlocks: Int32Array;
  preemptions: Int32Array;
  next: Int32Array;
  prev: Int32Array;
  /** What the iteration under way has given it: tokens to verify, or a block in lockstep. 0 between iterations. */
  given: Int32Array;
  /** 0 is the most urgent class. */
  priority: Uint8Array;
  status: Uint8Array;
  /** 1 when the KV of the prompt comes from another engine and need not be computed. */
  transferred: Uint8Array;

  capacity: number;
  private highWater = 0;
  private freeHead = -1;

  constructor(capacity = 256) {
    this.capacity = capacity;
    this.arrival = new Float64Array(capacity);
    this.visible = new Float64Array(capacity);
    this.firstToken = new Float64Array(capacity);
    this.lastToken = new Float64Array(capacity);
    this.order = new Float64Array(capacity);
    this.admitted = new Float64Array(capacity);
    this.id = new Int32Array(capacity);
    this.input = new Int32Array(capacity);
    this.output = new Int32Array(capacity);
    this.generatedOffset = new Int32Array(capacity);
    this.computed = new Int32Array(capacity);
    this.blocks = new Int32Array(capacity);
    this.sharedBlocks = new Int32Array(capacity);
    this.preemptions = new Int32Array(capacity);
    this.next = new Int32Array(capacity);
    this.prev = new Int32Array(capacity);
    this.given = new Int32Array(capacity);
    this.priority = new Uint8Array(capacity);
    this.status = new Uint8Array(capacity);
    this.transferred = new Uint8Array(capacity);
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
      if (this.firstToken[slot] >= 0) this.firstToken[slot] -= ticks;
    }
  }

  snapshot(): RequestTableSnapshot {
    const end = this.highWater;
    return {
      floats: FLOAT_FIELDS.map((field) => this[field].slice(0, end)),
      ints: INT_FIELDS.map((field) => this[field].slice(0, end)),
      bytes: BYTE_FIELDS.map((field) => this[field].slice(0, end)),
      highWater: end,
      freeHead: this.freeHead,
    };
  }

  restore(snapshot: RequestTableSnapshot): void {
    if (snapshot.highWater > this.capacity) this.resize(snapshot.highWater);
    for (let i = 0; i < FLOAT_FIELDS.length; i++) this[FLOAT_FIELDS[i]].set(snapshot.floats[i]);
    for (let i = 0; i < INT_FIELDS.length; i++) this[INT_FIELDS[i]].set(snapshot.ints[i]);
    for (let i = 0; i < BYTE_FIELDS.length; i++) this[BYTE_FIELDS[i]].set(snapshot.bytes[i]);
    this.highWater = snapshot.highWater;
    this.freeHead = snapshot.freeHead;
  }

  private resize(capacity: number): void {
    for (const field of FLOAT_FIELDS) {
      const grown = new Float64Array(capacity);
      grown.set(this[field]);
      this[field] = grown;
    }
    for (const field of INT_FIELDS) {
      const grown = new Int32Array(capacity);
      grown.set(this[field]);
      this[field] = grown;
    }
    for (const field of BYTE_FIELDS) {
      const grown = new Uint8Array(capacity);
      grown.set(this[field]);
      this[field] = grown;
    }
    this.capacity = capacity;
  }
}
