import { MAX_REQUEST_TOKENS } from '../engine/engine-config.ts';
import { enlarged } from '../engine/slot-buffer.ts';
import { quoteField, traceError } from '../simulator-error.ts';
import { pickRequests } from './operations.ts';
import type { Timestamp } from './request-reader.ts';
import type { Trace, TraceOptions } from './trace.ts';

const WHOLE_NUMBER = /^[+-]?\d+(\.0*)?$/;
const FIRST_CAPACITY = 1024;
/** A choice: the largest public traces have some millions. */
const MOST_REQUESTS = 20_000_000;
/** A choice: longer spans are mistakes of the unit, and would need memory for each of their seconds. */
const LONGEST_SPAN_DAYS = 400;
const MS_PER_DAY = 86_400_000;
/** Hashes of text under adapters: beyond those of public traces. */
const FIRST_ADAPTER_ID = 2 ** 52;
/** Requests of a piece, for whoever takes them as they are read. */
const PIECE = 2 ** 16;

/** A request that follows the answer to request `previous`, `thinkMs` after its last token. */
export interface FollowUp {
  readonly previous: number;
  readonly thinkMs: number;
}

/** Facts of a request besides its arrival and lengths. */
export interface RequestContent {
  /** Block hashes of the prompt, as the file has them. */
  readonly hashIds?: unknown;
  /** Name of its LoRA adapter; empty, `null` or `base` for the base model. */
  readonly adapter?: unknown;
  /** Blocks of the answer, which follow them. */
  readonly answerHashIds?: readonly number[];
  /** Its arrival then need not be in order. */
  readonly follows?: FollowUp;
}

interface BuilderOptions extends Pick<TraceOptions, 'onRequests'> {
  readonly prefixBlockTokens: number;
  /** Whether requests that are not in order are put in order, instead of refused. */
  readonly sort: boolean;
}

/** Collects the requests of one file, in order, and refuses what cannot be a request. */
export class TraceBuilder {
  readonly #source: string;
  readonly #options: BuilderOptions;
  #arrivalMs = new Float64Array(FIRST_CAPACITY);
  #inputTokens = new Int32Array(FIRST_CAPACITY);
  #outputTokens = new Int32Array(FIRST_CAPACITY);
  /** End of each request's hashes in `#prefixIds`; empty while there are none. */
  #prefixEnds = new Int32Array(0);
  #prefixIds = new Float64Array(FIRST_CAPACITY);
  #prefixCount = 0;
  /** Numbers of adapters by name, and those of the requests, which count from 1. */
  readonly #adapters = new Map<string, number>();
  #adapterOf: number[] = [];
  /** Adapter of the request that is added. */
  #adapter = 0;
  /** Hashes of text under adapters, by adapter and hash in the file. */
  readonly #adapterIds = new Map<string, number>();
  #count = 0;
  /** Requests, those that were handed over included. */
  #added = 0;
  #outOfOrder = 0;
  #first: Timestamp | undefined;
  #previousMs = 0;
  #namesAnswers = false;
  readonly #followUps = new Map<number, FollowUp>();

  constructor(source: string, options: BuilderOptions) {
    this.#source = source;
    this.#options = options;
  }

  /** Answers the number of the request, in the order in which they are added. */
  add(
    line: number,
    arrival: Timestamp,
    inputTokens: number,
    outputTokens: number,
    { hashIds, answerHashIds = [], adapter, follows }: RequestContent = {},
  ): number {
    this.#first ??= arrival;
    const ms = arrival.dayMs - this.#first.dayMs + (arrival.ms - this.#first.ms);
    if (Math.abs(ms) > LONGEST_SPAN_DAYS * MS_PER_DAY) {
      const days = (ms / MS_PER_DAY).toPrecision(3);
      const expected = `an arrival within ${LONGEST_SPAN_DAYS} days of the first, or another unit of time`;
      throw traceError('TRACE_TIMESTAMP', this.#source, line, expected, `${days} days`, 'timeUnit');
    }
    if (++this.#added > MOST_REQUESTS) {
      throw traceError('TRACE_TOO_LARGE', this.#source, line, `at most ${MOST_REQUESTS} requests`, 'more');
    }
    if (follows === undefined) this.#checkOrder(line, ms);
    const { sort, onRequests } = this.#options;
    if (this.#count === PIECE && onRequests !== undefined && !sort) this.#handOver(onRequests);
    if (this.#count === this.#arrivalMs.length) this.#grow();
    this.#arrivalMs[this.#count] = ms;
    this.#inputTokens[this.#count] = inputTokens;
    this.#outputTokens[this.#count] = outputTokens;
    this.#adapter = adapter === undefined ? 0 : this.#numberOf(adapter);
    if (this.#adapter > 0) this.#adapterOf[this.#count] = this.#adapter;
    if (hashIds !== undefined) this.#addPrefix(line, inputTokens, hashIds);
    for (const id of answerHashIds) this.#addHash(id);
    if (answerHashIds.length > 0) this.#namesAnswers = true;
    if (this.#prefixCount > 0) this.#endPrefix();
    if (follows !== undefined) this.#followUps.set(this.#count, follows);
    return this.#count++;
  }

  /** Reads a length; `column` is its name in the file. */
  length(line: number, column: string, field: unknown): number {
    const value = lengthIn(field);
    if (value === null) {
      const expected = `${column} to be a whole number of tokens`;
      throw traceError('TRACE_NOT_AN_INTEGER', this.#source, line, expected, quoteField(field));
    }
    if (value < 1 || value > MAX_REQUEST_TOKENS) {
      const expected = `${column} to be from 1 to ${MAX_REQUEST_TOKENS} tokens`;
      const option = value === 0 ? 'unanswered' : undefined;
      throw traceError('TRACE_LENGTH_RANGE', this.#source, line, expected, quoteField(field), option);
    }
    return value;
  }

  build(): { readonly trace: Trace; readonly outOfOrder: number } {
    if (this.#count === 0) {
      throw traceError('TRACE_NO_REQUESTS', this.#source, null, 'at least one request', 'none');
    }
    const trace = this.#requests();
    const isInOrder = this.#outOfOrder === 0 && this.#followUps.size === 0;
    return { trace: isInOrder ? trace : inOrder(trace), outOfOrder: this.#outOfOrder };
  }

  #checkOrder(line: number, ms: number): void {
    if (ms < this.#previousMs) {
      this.#outOfOrder += 1;
      const expected = 'an arrival at or after the one before it';
      const got = `one ${round(this.#previousMs - ms)} ms earlier`;
      if (!this.#options.sort)
        throw traceError('TRACE_TIME_BACKWARDS', this.#source, line, expected, got, 'sort');
    }
    this.#previousMs = ms;
  }

  #handOver(onRequests: (requests: Trace) => void): void {
    onRequests(this.#requests());
    this.#arrivalMs = new Float64Array(PIECE);
    this.#inputTokens = new Int32Array(PIECE);
    this.#outputTokens = new Int32Array(PIECE);
    this.#adapterOf = [];
    this.#prefixEnds = new Int32Array(0);
    this.#prefixCount = 0;
    this.#count = 0;
  }

  #requests(): Trace {
    const count = this.#count;
    return {
      source: this.#source,
      // Views: a copy would double what a long trace needs, and what lies behind its end was never touched.
      arrivalMs: this.#arrivalMs.subarray(0, count),
      inputTokens: this.#inputTokens.subarray(0, count),
      outputTokens: this.#outputTokens.subarray(0, count),
      ...(this.#adapters.size > 0 && {
        adapters: {
          names: [...this.#adapters.keys()],
          of: Int32Array.from({ length: count }, (_, i) => this.#adapterOf[i] ?? 0),
        },
      }),
      ...(this.#prefixCount > 0 && { prefixBlocks: this.#prefixBlocks() }),
      ...(this.#followUps.size > 0 && {
        followUps: {
          previous: Int32Array.from({ length: count }, (_, i) => this.#followUps.get(i)?.previous ?? -1),
          thinkMs: Float64Array.from({ length: count }, (_, i) => this.#followUps.get(i)?.thinkMs ?? 0),
        },
      }),
    };
  }

  #prefixBlocks(): Trace['prefixBlocks'] {
    const offsets = new Int32Array(this.#count + 1);
    offsets.set(this.#prefixEnds.subarray(0, this.#count), 1);
    return {
      blockTokens: this.#options.prefixBlockTokens,
      ...(this.#namesAnswers && { namesAnswers: true }),
      ids: this.#prefixIds.slice(0, this.#prefixCount),
      offsets,
    };
  }

  #addPrefix(line: number, inputTokens: number, hashIds: unknown): void {
    const { prefixBlockTokens: size } = this.#options;
    const most = Math.ceil(inputTokens / size);
    if (!Array.isArray(hashIds) || hashIds.length > most) {
      const prompt = `a prompt of ${inputTokens} tokens in blocks of ${size}`;
      const got = Array.isArray(hashIds) ? `${hashIds.length}` : quoteField(hashIds);
      const expected = `a list of at most ${most} block hashes (${prompt})`;
      throw traceError('TRACE_HASH_IDS', this.#source, line, expected, got, 'prefixBlockTokens');
    }
    for (const given of hashIds) {
      const id = typeof given === 'bigint' ? Number(given) : given;
      const expected = 'whole numbers as block hashes';
      if (!Number.isSafeInteger(id))
        throw traceError('TRACE_HASH_IDS', this.#source, line, expected, quoteField(given));
      this.#addHash(id);
    }
  }

  #numberOf(adapter: unknown): number {
    const name = String(adapter ?? '').trim();
    return name === '' || name === 'base' ? 0 : 1 + numberIn(this.#adapters, name);
  }

  #addHash(id: number): void {
    if (this.#prefixCount === this.#prefixIds.length)
      this.#prefixIds = enlarged(this.#prefixIds, 2 * this.#prefixCount);
    // KV of equal text under another adapter is not equal.
    this.#prefixIds[this.#prefixCount] =
      this.#adapter === 0 ? id : FIRST_ADAPTER_ID + numberIn(this.#adapterIds, `${this.#adapter} ${id}`);
    this.#prefixCount += 1;
  }

  #endPrefix(): void {
    const { length } = this.#arrivalMs;
    if (this.#prefixEnds.length < length) this.#prefixEnds = enlarged(this.#prefixEnds, length);
    this.#prefixEnds[this.#count] = this.#prefixCount;
  }

  #grow(): void {
    this.#arrivalMs = enlarged(this.#arrivalMs, 2 * this.#count);
    this.#inputTokens = enlarged(this.#inputTokens, 2 * this.#count);
    this.#outputTokens = enlarged(this.#outputTokens, 2 * this.#count);
  }
}

/** The number of a key, from 0 on in the order in which they come. */
function numberIn(numbers: Map<string, number>, key: string): number {
  const known = numbers.get(key) ?? numbers.size;
  numbers.set(key, known);
  return known;
}

function lengthIn(field: unknown): number | null {
  if (typeof field === 'bigint') return Number(field);
  // Spreadsheets write 1,200 in quotes.
  const text =
    typeof field === 'string'
      ? field.trim().replace(/^(\d{1,3})((,\d{3})+)$/, (all) => all.replaceAll(',', ''))
      : field;
  const value = typeof text === 'string' && WHOLE_NUMBER.test(text) ? Number(text) : text;
  return typeof value === 'number' && Number.isInteger(value) ? value : null;
}

/** The same requests by arrival; those that arrive together stay as they were. */
function inOrder(trace: Trace): Trace {
  const { arrivalMs } = trace;
  const order = Int32Array.from(arrivalMs.keys()).sort((a, b) => arrivalMs[a] - arrivalMs[b] || a - b);
  return {
    ...pickRequests(trace, order),
    arrivalMs: Float64Array.from(order, (i) => arrivalMs[i] - arrivalMs[order[0]]),
  };
}

function round(ms: number): number {
  return Number(ms.toPrecision(6));
}
