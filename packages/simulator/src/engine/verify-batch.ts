import type { AcceptanceSampler, EmissionSampler } from './acceptance-sampler.ts';
import { MAX_SPECULATION_DEPTH } from './engine-config.ts';
import type { RequestTable } from './request-table.ts';
import { enlarged } from './slot-buffer.ts';
import { AdmissionLists } from './slot-list.ts';

/** Verify steps drawn ahead: enough to amortise the visit of a sequence, few enough to waste little. */
const HORIZON = 32;

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
  /** Slots that an iteration needs behind those of the tokens that a member verifies. */
  private lookahead = 0;
  /** Iterations since the beginning of what is drawn. */
  private clock = 0;
  private acceptance: AcceptanceSampler | null = null;
  private emissions: EmissionSampler | null = null;
  /** Entries of `sums` for an iteration: its new KV blocks, then a counter for each number of tokens. */
  private width = 2;
  /** New KV blocks that iteration j needs: entry `j * width`. Members that emit t tokens in it: entry `j * width + t`. */
  private readonly sums = new Int32Array(HORIZON * (MAX_SPECULATION_DEPTH + 2));
  /** Accepted tokens that an iteration throws away because an output ends before them. */
  private readonly surplus = new Int32Array(HORIZON);
  /** Members that complete in an iteration. */
  declare private readonly completing: AdmissionLists;

  private members: Int32Array = new Int32Array(64);
  // By slot:
  /** Index among the members, or -1. */
  private position: Int32Array = new Int32Array(0);
  private since: Int32Array = new Int32Array(0);
  /** The last iteration drawn: that of its completion, or the last of the horizon. */
  private until: Int32Array = new Int32Array(0);
  /** Tokens emitted and blocks held at the horizon, if it does not complete before. */
  private emittedAtHorizon: Int32Array = new Int32Array(0);
  private heldAtHorizon: Int32Array = new Int32Array(0);
  private surplusAtEnd: Int32Array = new Int32Array(0);
  /** Tokens that it emits in iteration j, if its output does not end before: entry `slot * HORIZON + j`. */
  private drawn: Uint8Array = new Uint8Array(0);

  declare private readonly table: RequestTable;
  declare private readonly blockShift: number;

  constructor(table: RequestTable, blockTokens: number) {
    this.table = table;
    this.blockShift = 31 - Math.clz32(blockTokens);
    this.completing = new AdmissionLists(table, HORIZON);
  }

  /** Starts without members. */
  activate(given: number, lookahead: number, acceptance: AcceptanceSampler): void {
    this.active = true;
    this.lookahead = lookahead;
    if (given !== this.given || acceptance !== this.acceptance) {
      this.emissions = acceptance.emissions(given - 1);
    }
    this.given = given;
    this.width = given + 1;
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
    if (this.count === this.members.length) this.members = enlarged(this.members, 2 * this.count);
    this.position[slot] = this.count;
    this.members[this.count++] = slot;
    this.contextSum += this.table.input[slot] + this.table.generatedOffset[slot] - 1;
    this.draw(slot, this.clock);
  }

  /** Takes a sequence out; the table then holds its state. */
  remove(slot: number): void {
    const { table, clock } = this;
    const last = this.members[--this.count];
    const position = this.position[slot];
    this.members[position] = last;
    this.position[last] = position;
    this.position[slot] = -1;
    this.settle(slot);
    this.contextSum -= table.input[slot] + table.generatedOffset[slot] - 1;
    if (clock <= this.until[slot]) this.takeBack(slot);
  }

  emittedBy(slot: number): number {
    return this.emittedBefore(slot, this.clock);
  }

  /** KV blocks that a member holds, look-ahead slots included. */
  blocksHeld(slot: number): number {
    if (this.clock === this.since[slot]) return this.table.blocks[slot];
    const reached = this.reachOf(slot, this.emittedBefore(slot, this.clock - 1));
    return Math.max(this.blocksFor(reached), this.table.blocks[slot]);
  }

  /** New KV blocks that the next iteration needs. */
  blocksForNext(): number {
    if (this.clock === HORIZON) this.drawOn();
    return this.sums[this.clock * this.width];
  }

  /** Adds the members that emit n tokens in the next iteration to entry n. Answers the tokens. Behind `blocksForNext`. */
  emitNext(sequences: Float64Array): number {
    const { sums, given } = this;
    const at = this.clock * this.width;
    let tokens = 0;
    for (let n = 1; n <= given; n++) {
      const emitting = sums[at + n];
      sequences[n] += emitting;
      tokens += n * emitting;
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
    return this.completing.heads[this.clock++];
  }

  /** The member that completes in the same iteration as `slot`, and was admitted next; -1 if there is none. */
  completingAfter(slot: number): number {
    return this.completing.next[slot];
  }

  /** Draws the verify steps of a member from iteration `from` to its completion or the horizon, and adds them up. */
  private draw(slot: number, from: number): void {
    const { table, sums, drawn, blockShift, width } = this;
    const row = slot * HORIZON;
    const key = (this.acceptance as AcceptanceSampler).requestKey(table.id[slot]);
    (this.emissions as EmissionSampler).draw(key, table.verifySteps[slot], drawn, row + from, row + HORIZON);
    const output = table.output[slot];
    const held = table.blocks[slot];
    const reach = this.reachOf(slot, 0) + (1 << blockShift) - 1;
    let emitted = table.generatedOffset[slot];
    let taken = 0;
    let j = from;
    let at = from * width;
    this.since[slot] = from;
    for (; j < HORIZON; j++) {
      const beyond = ((reach + emitted) >> blockShift) - held;
      // 0 when negative, without a branch, which would be mispredicted too often.
      const needed = beyond & ~(beyond >> 31);
      sums[at] += needed - taken;
      taken = needed;
      const tokens = drawn[row + j];
      emitted = (emitted + tokens) | 0;
      if (emitted >= output) break;
      sums[at + tokens]++;
      at += width;
    }
    if (j < HORIZON) {
      this.complete(slot, j, emitted - output);
    } else {
      this.until[slot] = HORIZON - 1;
      this.emittedAtHorizon[slot] = emitted;
      this.heldAtHorizon[slot] = held + taken;
    }
  }

  /** A member completes in iteration j, which accepts `surplus` tokens behind the end of its output. */
  private complete(slot: number, j: number, surplus: number): void {
    const row = slot * HORIZON;
    this.drawn[row + j] -= surplus;
    this.sums[j * this.width + this.drawn[row + j]]++;
    this.until[slot] = j;
    this.surplusAtEnd[slot] = surplus;
    this.surplus[j] += surplus;
    this.completing.add(j, slot);
  }

  /** Takes what is drawn of the future of a settled sequence out of the sums. */
  private takeBack(slot: number): void {
    const { table, sums, drawn } = this;
    const row = slot * HORIZON;
    const end = this.until[slot];
    let emitted = table.generatedOffset[slot];
    let held = table.blocks[slot];
    for (let j = this.clock; j <= end; j++) {
      const needed = this.blocksFor(this.reachOf(slot, emitted));
      if (needed > held) {
        sums[j * this.width] -= needed - held;
        held = needed;
      }
      sums[j * this.width + drawn[row + j]]--;
      emitted += drawn[row + j];
    }
    if (emitted < table.output[slot]) return;
    this.surplus[end] -= this.surplusAtEnd[slot];
    this.completing.remove(end, slot);
  }

  private drawOn(): void {
    const { table, members } = this;
    this.clearSums();
    this.clock = 0;
    for (let i = 0; i < this.count; i++) {
      const slot = members[i];
      const emitted = this.emittedAtHorizon[slot];
      if (this.since[slot] < HORIZON) {
        table.computed[slot] = table.input[slot] + emitted - this.drawn[(slot + 1) * HORIZON - 1];
      }
      table.generatedOffset[slot] = emitted;
      table.blocks[slot] = this.heldAtHorizon[slot];
      table.verifySteps[slot] += HORIZON - this.since[slot];
      this.draw(slot, 0);
    }
  }

  private settle(slot: number): void {
    const { table, clock } = this;
    const steps = clock - this.since[slot];
    if (steps === 0) return;
    const beforeLast = this.emittedBefore(slot, clock - 1);
    const reached = this.blocksFor(this.reachOf(slot, beforeLast));
    table.blocks[slot] = Math.max(reached, table.blocks[slot]);
    table.computed[slot] = table.input[slot] + beforeLast;
    table.generatedOffset[slot] = beforeLast + this.drawn[slot * HORIZON + clock - 1];
    table.verifySteps[slot] += steps;
    this.since[slot] = clock;
  }

  /** Tokens that a member has emitted before iteration j. */
  private emittedBefore(slot: number, j: number): number {
    const row = slot * HORIZON;
    let emitted = this.table.generatedOffset[slot];
    for (let at = row + this.since[slot]; at < row + j; at++) emitted += this.drawn[at];
    return emitted;
  }

  /** Slots that a member needs for a verify step behind `emitted` tokens. */
  private reachOf(slot: number, emitted: number): number {
    return this.table.input[slot] - 1 + emitted + this.given + this.lookahead;
  }

  private clearSums(): void {
    this.sums.fill(0, 0, HORIZON * this.width);
    this.surplus.fill(0);
    this.completing.clear();
  }

  private blocksFor(tokens: number): number {
    return (tokens + (1 << this.blockShift) - 1) >> this.blockShift;
  }

  private grow(): void {
    const { capacity } = this.table;
    const known = this.position.length;
    this.position = enlarged(this.position, capacity).fill(-1, known);
    for (const column of ['since', 'until', 'emittedAtHorizon', 'heldAtHorizon', 'surplusAtEnd'] as const) {
      this[column] = enlarged(this[column], capacity);
    }
    this.drawn = enlarged(this.drawn, capacity * HORIZON);
  }
}
