import type { PromptPrefix } from '../engine/prefix-cache.ts';

/** Chunks remembered since the last change of generations; as many again are remembered from before it. */
const GENERATION = 1 << 16;

/**
 * The gateway's memory of which replica was sent which chunks of prompts. It does not see what the replicas evict: it
 * forgets what was not used for two generations of chunks, as gateways do that keep a bounded list of hashes
 * (llm-d prefix-cache-scorer).
 */
export class PrefixIndex {
  /** Replicas that were sent a chunk, bit by slot. */
  private young = new Map<number, number>();
  private old = new Map<number, number>();

  /** Tokens of the longest known prefix of a prompt at each of 32 slots, into `tokens` from `first` on. */
  match(prefix: PromptPrefix, input: number, tokens: Float64Array, first = 0): void {
    tokens.fill(0, first, first + 32);
    const { ids, ends, chunkTokens, namedTokens = input } = prefix;
    const most = Math.min(input, namedTokens);
    let holders = -1;
    for (let at = 0; at < ids.length; at++) {
      const id = ids[at];
      const known = holders & (this.young.get(id) ?? this.old.get(id) ?? 0);
      const lost = holders & ~known;
      const start = at === 0 ? 0 : Math.min(most, ends === undefined ? at * chunkTokens : ends[at - 1]);
      for (let left = at === 0 ? 0 : lost; left !== 0; left &= left - 1)
        tokens[first + 31 - Math.clz32(left & -left)] = start;
      holders = known;
      if (holders === 0) return;
    }
    const end = ids.length === 0 ? 0 : ends === undefined ? ids.length * chunkTokens : ends[ids.length - 1];
    for (let left = holders; left !== 0; left &= left - 1) {
      tokens[first + 31 - Math.clz32(left & -left)] = Math.min(most, end);
    }
  }

  /** Remembers that a prompt was sent to `slot`. */
  record(prefix: PromptPrefix, slot: number): void {
    const { ids } = prefix;
    for (let at = 0; at < ids.length; at++) {
      const id = ids[at];
      this.young.set(id, (this.young.get(id) ?? this.old.get(id) ?? 0) | (1 << slot));
    }
    if (this.young.size < GENERATION) return;
    this.old = this.young;
    this.young = new Map();
  }

  forget(slot: number): void {
    for (const chunks of [this.young, this.old]) {
      for (const [id, holders] of chunks)
        if ((holders & (1 << slot)) !== 0) chunks.set(id, holders & ~(1 << slot));
    }
  }

  snapshot(): readonly [ReadonlyMap<number, number>, ReadonlyMap<number, number>] {
    return [new Map(this.young), new Map(this.old)];
  }

  restore([young, old]: readonly [ReadonlyMap<number, number>, ReadonlyMap<number, number>]): void {
    this.young = new Map(young);
    this.old = new Map(old);
  }
}
