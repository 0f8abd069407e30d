import type { AcceptanceSampler } from './acceptance-sampler.ts';
import { MAX_SPECULATION_DEPTH } from './engine-config.ts';
import type { LatencyHistogram } from './latency-histogram.ts';
import type { RequestTable } from './request-table.ts';

/** Verify steps drawn ahead: enough to amortise the visit of a sequence, few enough to waste little. */
const HORIZON = 32;
/** Counters of one step: one for each number of tokens that a sequence may emit. */
const WIDTH = MAX_SPECULATION_DEPTH + 2;

/**
 * The decoding sequences while each of them verifies 1 + depth tokens in every iteration. What a sequence emits in its
 * n-th verify step follows from (request, n) alone, so it is drawn ahead and added up by iteration: an iteration then
 * costs the same for any number of sequences, and a sequence is visited once for many iterations.
 *
 * While a sequence is a member, the table holds its state as of `since`; what it is now follows from `clock`.
 */
export class VerifyBatch {
  /** Whether the decoding sequences are members. If not, the table holds the state of each. */
  active = false;
  count = 0;
  /** Sum of the members' context lengths. */
  contextSum = 0;
  /** Tokens that each member verifies in an iteration: 1 + depth. */
  given = 1;
  /** Iterations since the beginning of what is drawn. */
  private clock = 0;
  private acceptance: AcceptanceSampler | null = null;
  /** Members that emit t tokens in iteration j: entry `j * WIDTH + t`. */
  private readonly emitting = new Int32Array(HORIZON * WIDTH);
  /** Accepted tokens that an iteration throws away because an output ends before them. */
  private readonly surplus = new Int32Array(HORIZON);
  /** New KV blocks that an iteration needs. */
  private readonly blocks = new Int32Array(HORIZON);
  /** First of the members that complete in an iteration, in order of admission; -1 if none. */
  private readonly completing = new Int32Array(HORIZON).fill(-1);

  private members: Int32Array = new Int32Array(64);
  // By slot:
  /** Index among the members, or -1. */
  private position: Int32Array = new Int32Array(0);
  private since: Int32Array = new Int32Array(0);
  /** The last iteration drawn: that of its completion, or the last of the horizon. */
  private until: Int32Array = new Int32Array(0);
  private surplusAtEnd: Int32Array = new Int32Array(0);
  private nextCompleting: Int32Array = new Int32Array(0);
  /** Tokens emitted by the end of iteration j: entry `slot * HORIZON + j`. */
  private emitted: Int32Array = new Int32Array(0);

  private readonly table: RequestTable;
  private readonly blockShift: number;

  constructor(table: RequestTable, blockTokens: number) {
    this.table = table;
    this.blockShift = Math.log2(blockTokens);
  }

  /** Starts without members. */
  activate(given: number, acceptance: AcceptanceSampler): void {
    this.active = true;
    this.given = given;
    this.acceptance = acceptance;
    this.clock = 0;
  }

  /** Writes the state of all members into the table, and ends their membership. */
  deactivate(): void {
    if (!this.active) return;
    for (let i = 0; i < this.count; i++) {
      this.settle(this.members[i]);
      this.position[this.members[i]] = -1;
    }
    this.clearSums();
    this.count = 0;
    this.contextSum = 0;
    this.active = false;
  }

  has(slot: number): boolean {
    return this.active && this.position[slot] >= 0;
  }

  /** Adds a sequence whose state the table holds. */
  add(slot: number): void {
    if (slot >= this.position.length) this.grow();
    if (this.count === this.members.length) this.members = grown(this.members, 2 * this.count);
    this.position[slot] = this.count;
    this.members[this.count++] = slot;
    this.contextSum += this.table.input[slot] + this.table.generatedOffset[slot] - 1;
    this.draw(slot, this.clock);
  }

  /** Takes a sequence out; the table then holds its state. */
  remove(slot: number): void {
    const { table, emitted, clock } = this;
    const last = this.members[--this.count];
    const position = this.position[slot];
    this.members[position] = last;
    this.position[last] = position;
    this.position[slot] = -1;
    const end = this.until[slot];
    const surplus = this.surplusAtEnd[slot];
    this.settle(slot);
    this.contextSum -= table.input[slot] + table.generatedOffset[slot] - 1;

    // What was drawn of its future does not happen here.
    const row = slot * HORIZON;
    let tokensSoFar = table.generatedOffset[slot];
    let held = table.blocks[slot];
    for (let j = clock; j <= end; j++) {
      const needed = this.blocksFor(table.input[slot] - 1 + tokensSoFar + this.given);
      if (needed > held) {
        this.blocks[j] -= needed - held;
        held = needed;
      }
      this.emitting[j * WIDTH + emitted[row + j] - tokensSoFar]--;
      tokensSoFar = emitted[row + j];
    }
    if (clock <= end && tokensSoFar === table.output[slot]) {
      this.surplus[end] -= surplus;
      this.unlinkCompletion(slot, end);
    }
  }

  /** Tokens that a member has emitted. */
  emittedBy(slot: number): number {
    if (this.clock === this.since[slot]) return this.table.generatedOffset[slot];
    return this.emitted[slot * HORIZON + this.clock - 1];
  }

  /** KV blocks that a member holds, look-ahead slots included. */
  blocksHeld(slot: number): number {
    const steps = this.clock - this.since[slot];
    if (steps === 0) return this.table.blocks[slot];
    const beforeLast =
      steps > 1 ? this.emitted[slot * HORIZON + this.clock - 2] : this.table.generatedOffset[slot];
    const reached = this.blocksFor(this.table.input[slot] - 1 + beforeLast + this.given);
    return Math.max(reached, this.table.blocks[slot]);
  }

  /** New KV blocks that the next iteration needs. */
  blocksForNext(): number {
    if (this.clock === HORIZON) this.drawOn();
    return this.blocks[this.clock];
  }

  /**
   * Adds what the next iteration emits, when it takes `ticks`, to a histogram of the latencies between tokens. Answers
   * the tokens. Behind `blocksForNext`.
   */
  emitNext(ticks: number, histogram: LatencyHistogram): number {
    const at = this.clock * WIDTH;
    let tokens = 0;
    for (let t = 1; t <= this.given; t++) {
      const emitting = this.emitting[at + t];
      if (emitting === 0) continue;
      tokens += t * emitting;
      histogram.add(ticks / t, t * emitting);
    }
    return tokens;
  }

  /** Accepted tokens that the next iteration throws away. Behind `blocksForNext`. */
  surplusOfNext(): number {
    return this.surplus[this.clock];
  }

  /** Ends an iteration in which the members emitted `tokens`. Answers the first that is complete, or -1. */
  advance(tokens: number): number {
    this.contextSum += tokens;
    return this.completing[this.clock++];
  }

  /** The member that completes in the same iteration as `slot`, and was admitted next; -1 if there is none. */
  completingAfter(slot: number): number {
    return this.nextCompleting[slot];
  }

  /** Draws the verify steps of a member from iteration `from` to its completion or the horizon, and adds them up. */
  private draw(slot: number, from: number): void {
    const { table, given, emitting, blocks, emitted } = this;
    const acceptance = this.acceptance as AcceptanceSampler;
    const key = acceptance.requestKey(table.id[slot]);
    const output = table.output[slot];
    const firstStep = table.verifySteps[slot] - from;
    const reach = table.input[slot] - 1 + given;
    const row = slot * HORIZON;
    const drafts = given - 1;
    let tokensSoFar = table.generatedOffset[slot];
    let held = table.blocks[slot];
    let room = held << this.blockShift;
    this.since[slot] = from;
    let j = from;
    for (; j < HORIZON; j++) {
      if (reach + tokensSoFar > room) {
        const needed = this.blocksFor(reach + tokensSoFar);
        blocks[j] += needed - held;
        held = needed;
        room = held << this.blockShift;
      }
      const tokens = 1 + acceptance.accepted(key, firstStep + j, drafts);
      tokensSoFar = (tokensSoFar + tokens) | 0;
      if (tokensSoFar >= output) break;
      emitting[j * WIDTH + tokens]++;
      emitted[row + j] = tokensSoFar;
    }
    this.until[slot] = Math.min(j, HORIZON - 1);
    if (j === HORIZON) return;
    const surplus = tokensSoFar - output;
    const before = j > from ? emitted[row + j - 1] : table.generatedOffset[slot];
    emitting[j * WIDTH + output - before]++;
    emitted[row + j] = output;
    this.surplusAtEnd[slot] = surplus;
    this.surplus[j] += surplus;
    this.linkCompletion(slot, j);
  }

  /** Draws the iterations behind the horizon. */
  private drawOn(): void {
    for (let i = 0; i < this.count; i++) this.settle(this.members[i]);
    this.clearSums();
    this.clock = 0;
    for (let i = 0; i < this.count; i++) this.draw(this.members[i], 0);
  }

  /** Writes the state of a member into the table. */
  private settle(slot: number): void {
    const steps = this.clock - this.since[slot];
    if (steps === 0) return;
    this.table.blocks[slot] = this.blocksHeld(slot);
    this.table.generatedOffset[slot] = this.emittedBy(slot);
    this.table.verifySteps[slot] += steps;
    this.since[slot] = this.clock;
  }

  private linkCompletion(slot: number, j: number): void {
    const { admitted } = this.table;
    let before = -1;
    let after = this.completing[j];
    while (after >= 0 && admitted[after] < admitted[slot]) {
      before = after;
      after = this.nextCompleting[after];
    }
    this.nextCompleting[slot] = after;
    if (before < 0) this.completing[j] = slot;
    else this.nextCompleting[before] = slot;
  }

  private unlinkCompletion(slot: number, j: number): void {
    let before = -1;
    for (let at = this.completing[j]; at !== slot; at = this.nextCompleting[at]) before = at;
    if (before < 0) this.completing[j] = this.nextCompleting[slot];
    else this.nextCompleting[before] = this.nextCompleting[slot];
  }

  private clearSums(): void {
    this.emitting.fill(0);
    this.surplus.fill(0);
    this.blocks.fill(0);
    this.completing.fill(-1);
  }

  private blocksFor(tokens: number): number {
    return (tokens + (1 << this.blockShift) - 1) >> this.blockShift;
  }

  private grow(): void {
    const { capacity } = this.table;
    const known = this.position.length;
    this.position = grown(this.position, capacity).fill(-1, known);
    this.since = grown(this.since, capacity);
    this.until = grown(this.until, capacity);
    this.surplusAtEnd = grown(this.surplusAtEnd, capacity);
    this.nextCompleting = grown(this.nextCompleting, capacity);
    this.emitted = grown(this.emitted, capacity * HORIZON);
  }
}

function grown(array: Int32Array, length: number): Int32Array {
  const larger = new Int32Array(length);
  larger.set(array);
  return larger;
}
