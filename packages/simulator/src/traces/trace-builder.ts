import { MAX_REQUEST_TOKENS } from '../engine/engine-config.ts';
import type { Timestamp } from './timestamp.ts';
import type { Trace } from './trace.ts';
import { quoteField, TraceError } from './trace-error.ts';

const WHOLE_NUMBER = /^[+-]?\d+(\.0*)?$/;

/** Collects the requests of one file, in order, and refuses what cannot be a request. */
export class TraceBuilder {
  readonly #source: string;
  readonly #prefixBlockTokens: number;
  readonly #arrivalMs: Float64Array;
  readonly #inputTokens: Int32Array;
  readonly #outputTokens: Int32Array;
  readonly #prefixOffsets: Int32Array;
  readonly #prefixIds: number[] = [];
  #count = 0;
  #first: Timestamp | undefined;
  #previousMs = 0;

  /** `capacity`: most requests that can come, for instance the number of lines. */
  constructor(source: string, capacity: number, prefixBlockTokens: number) {
    this.#source = source;
    this.#prefixBlockTokens = prefixBlockTokens;
    this.#arrivalMs = new Float64Array(capacity);
    this.#inputTokens = new Int32Array(capacity);
    this.#outputTokens = new Int32Array(capacity);
    this.#prefixOffsets = new Int32Array(capacity + 1);
  }

  add(line: number, arrival: Timestamp, inputTokens: number, outputTokens: number, hashIds?: unknown): void {
    this.#first ??= arrival;
    const ms = arrival.dayMs - this.#first.dayMs + (arrival.ms - this.#first.ms);
    if (ms < this.#previousMs) {
      throw new TraceError(
        'TRACE_TIME_BACKWARDS',
        this.#source,
        line,
        'an arrival at or after the one before it',
        `one ${round(this.#previousMs - ms)} ms earlier`,
      );
    }
    this.#previousMs = ms;
    this.#arrivalMs[this.#count] = ms;
    this.#inputTokens[this.#count] = inputTokens;
    this.#outputTokens[this.#count] = outputTokens;
    if (hashIds !== undefined) this.#addPrefix(line, inputTokens, hashIds);
    this.#count += 1;
    this.#prefixOffsets[this.#count] = this.#prefixIds.length;
  }

  /** Reads a length; `column` is its name in the file. */
  length(line: number, column: string, field: unknown): number {
    const text = typeof field === 'string' ? field.trim() : field;
    const value = typeof text === 'string' && WHOLE_NUMBER.test(text) ? Number(text) : text;
    if (typeof value !== 'number' || !Number.isInteger(value)) {
      const expected = `${column} to be a whole number of tokens`;
      throw new TraceError('TRACE_NOT_AN_INTEGER', this.#source, line, expected, quoteField(field));
    }
    if (value < 1 || value > MAX_REQUEST_TOKENS) {
      const expected = `${column} to be from 1 to ${MAX_REQUEST_TOKENS} tokens`;
      throw new TraceError('TRACE_LENGTH_RANGE', this.#source, line, expected, quoteField(field));
    }
    return value;
  }

  build(): Trace {
    const count = this.#count;
    if (count === 0) {
      throw new TraceError('TRACE_NO_REQUESTS', this.#source, null, 'at least one request', 'none');
    }
    const trace: Trace = {
      source: this.#source,
      arrivalMs: this.#arrivalMs.slice(0, count),
      inputTokens: this.#inputTokens.slice(0, count),
      outputTokens: this.#outputTokens.slice(0, count),
    };
    if (this.#prefixIds.length === 0) return trace;
    return {
      ...trace,
      prefixBlocks: {
        blockTokens: this.#prefixBlockTokens,
        ids: Float64Array.from(this.#prefixIds),
        offsets: this.#prefixOffsets.slice(0, count + 1),
      },
    };
  }

  #addPrefix(line: number, inputTokens: number, hashIds: unknown): void {
    const most = Math.ceil(inputTokens / this.#prefixBlockTokens);
    if (!Array.isArray(hashIds) || hashIds.length > most) {
      throw new TraceError(
        'TRACE_HASH_IDS',
        this.#source,
        line,
        `a list of at most ${most} block hashes (a prompt of ${inputTokens} tokens in blocks of ${this.#prefixBlockTokens})`,
        Array.isArray(hashIds) ? `${hashIds.length}` : quoteField(hashIds),
      );
    }
    for (const id of hashIds) {
      if (!Number.isSafeInteger(id)) {
        throw new TraceError(
          'TRACE_HASH_IDS',
          this.#source,
          line,
          'whole numbers as block hashes',
          quoteField(id),
        );
      }
      this.#prefixIds.push(id);
    }
  }
}

function round(ms: number): number {
  return Number(ms.toPrecision(6));
}
