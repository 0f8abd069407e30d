import { quoteField, traceError } from '../simulator-error.ts';
import { findColumns, formOf, type TraceColumns, unitOfName } from './columns.ts';
import { MS_PER_UNIT, type TimeUnit, type Trace, type TraceOptions, type TraceReading } from './trace.ts';
import { type RequestContent, TraceBuilder } from './trace-builder.ts';

/** A trace and how it was read. */
export interface ReadTrace {
  readonly trace: Trace;
  readonly reading: TraceReading;
}

/** Tokens that one of Mooncake's `hash_ids` stands for. */
const MOONCAKE_BLOCK_TOKENS = 512;

interface ReadFile {
  /** What sort of file it is, for people: `CSV`, `JSON lines`, `Parquet`. */
  readonly kind: string;
  readonly source: string;
  /** Where the names are; `null` where there are no lines. */
  readonly line: number | null;
  readonly options: TraceOptions;
}

/** Reads requests from rows of named columns, whatever kind of file they come from. */
export class RequestReader {
  readonly columns: TraceColumns;
  readonly #names: readonly string[];
  readonly #about: ReadFile;
  readonly #builder: TraceBuilder;
  readonly #skipsUnanswered: boolean;
  readonly #form: ReturnType<typeof formOf>;
  #unit: TimeUnit | 'date' | undefined;
  /** Whether dates name their zone. */
  #zoned: boolean | undefined;
  #unanswered = 0;
  /** Last request of each conversation, and its arrival without the time that answers take. */
  readonly #turns = new Map<unknown, { readonly previous: number; readonly at: Timestamp }>();

  /** @throws {SimulatorError} when the columns cannot be found. */
  constructor(names: readonly string[], about: ReadFile) {
    const { source, line, options } = about;
    this.#names = names.map((name) => name.trim());
    this.#about = about;
    this.columns = findColumns(this.#names, options.map, source, line);
    this.#form = formOf(this.#names);
    this.#builder = new TraceBuilder(source, {
      prefixBlockTokens: options.prefixBlockTokens ?? MOONCAKE_BLOCK_TOKENS,
      sort: options.sort ?? this.#form?.isUnordered ?? false,
      onRequests: options.onRequests,
    });
    this.#skipsUnanswered = (options.unanswered ?? (this.#form?.listsFailed ? 'skip' : 'refuse')) === 'skip';
  }

  skip(): void {
    this.#unanswered += 1;
  }

  /** Takes a request. `line` is its place in the file. @throws {SimulatorError} with that place. */
  add(line: number, arrival: unknown, input: unknown, output: unknown, content?: RequestContent): void {
    const at = this.#arrival(arrival, line);
    if (this.#skipsUnanswered && (output === '' || output == null || Number(output) === 0)) {
      this.skip();
      return;
    }
    this.#add(line, at, input, output, content);
  }

  /**
   * Takes a request of a conversation: its first, with an arrival, or one that has a delay after the answer before it
   * instead, ms.
   */
  addTurn(line: number, session: unknown, turn: readonly unknown[], content: RequestContent): void {
    const [arrival, delay, input, output] = turn;
    const previous = this.#turns.get(session);
    if (previous === undefined || delay === undefined || delay === null) {
      const at = this.#arrival(arrival, line);
      this.#turns.set(session, { previous: this.#add(line, at, input, output, content), at });
      return;
    }
    const thinkMs = numberIn(delay);
    if (thinkMs === null || thinkMs < 0) {
      const expected = 'delay to be a number of ms from 0';
      throw traceError('TRACE_TIMESTAMP', this.#about.source, line, expected, quoteField(delay));
    }
    const at = { ...previous.at, ms: previous.at.ms + thinkMs };
    const follows = { previous: previous.previous, thinkMs };
    this.#turns.set(session, { previous: this.#add(line, at, input, output, { ...content, follows }), at });
  }

  #add(line: number, at: Timestamp, input: unknown, output: unknown, content?: RequestContent): number {
    const lengths = [
      this.#builder.length(line, this.#names[this.columns.input], input),
      this.#builder.length(line, this.#names[this.columns.output], output),
    ] as const;
    return this.#builder.add(line, at, ...lengths, content);
  }

  /** @throws {SimulatorError} `TRACE_NO_REQUESTS` when there are none. */
  end(): ReadTrace {
    const { columns } = this;
    const built = this.#builder.build();
    return {
      trace: built.trace,
      reading: {
        format: [this.#about.kind, this.#form?.title].filter(Boolean).join(', '),
        columns: {
          arrival: this.#names[columns.arrival],
          input: this.#names[columns.input],
          output: this.#names[columns.output],
          ...(columns.prefix !== -1 && { prefix: this.#names[columns.prefix] }),
          ...(columns.adapter !== -1 && { adapter: this.#names[columns.adapter] }),
        },
        arrivalUnit: this.#unit!,
        unanswered: this.#unanswered,
        outOfOrder: built.outOfOrder,
        ...(this.#turns.size > 0 && { conversations: this.#turns.size }),
      },
    };
  }

  #arrival(field: unknown, line: number): Timestamp {
    const number = numberIn(field);
    if (number !== null) {
      this.#unit ??= this.#about.options.timeUnit ?? this.#guessUnit(number);
      if (this.#unit !== 'date') return { dayMs: 0, ms: number * MS_PER_UNIT[this.#unit] };
    } else {
      const timestamp = dateIn(field);
      if (timestamp !== null) {
        this.#unit ??= 'date';
        this.#zoned ??= timestamp.isZoned;
        if (this.#zoned !== timestamp.isZoned) {
          const zone = this.#zoned ? 'with its zone, as those above have' : 'without a zone, as those above';
          const expected = `a time ${zone}`;
          throw traceError('TRACE_TIME_ZONES', this.#about.source, line, expected, quoteField(field));
        }
        if (this.#unit === 'date') return timestamp;
      }
    }
    const name = this.#names[this.columns.arrival];
    const expected =
      this.#unit === undefined
        ? `${name} to be a number or a time such as 2023-11-16 18:15:46.6805900`
        : `${name} to be ${this.#unit === 'date' ? 'a date and time' : 'a number'}, as those above`;
    throw traceError('TRACE_TIMESTAMP', this.#about.source, line, expected, quoteField(field));
  }

  /** Times since 1970 tell their unit by their size. */
  #guessUnit(first: number): TimeUnit {
    const named = unitOfName(this.#names[this.columns.arrival]);
    if (named !== undefined && named !== 's') return named;
    if (first >= 1e17) return 'ns';
    if (first >= 1e14) return 'us';
    if (first >= 1e11) return 'ms';
    if (first >= 1e9 || named === 's') return 's';
    return this.#about.kind === JSON_LINES ? 'ms' : 's';
  }
}

export const JSON_LINES = 'JSON lines';

function numberIn(field: unknown): number | null {
  if (typeof field === 'number') return Number.isFinite(field) ? field : null;
  if (typeof field === 'bigint') return Number(field);
  if (typeof field !== 'string') return null;
  const text = field.trim();
  const value = text === '' ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}

/** As readers of Parquet give it. */
function isPointInTime(field: unknown): field is { getTime(): number } {
  return typeof (field as { getTime?: unknown } | null | undefined)?.getTime === 'function';
}

function dateIn(field: unknown): Timestamp | null {
  if (isPointInTime(field)) {
    const ms = field.getTime();
    return Number.isNaN(ms) ? null : { dayMs: 0, ms, isZoned: true };
  }
  return typeof field === 'string' ? parseDateTime(field.trim()) : null;
}

/**
 * A moment, split so that a difference keeps the full precision of the text: `dayMs` is a whole number, and a double
 * that holds the ms of one day resolves 0.00002 us.
 */
export interface Timestamp {
  /** Midnight, ms since 1970-01-01 UTC; 0 for a plain number. */
  readonly dayMs: number;
  /** ms since `dayMs`. */
  readonly ms: number;
  /** Whether a date and time said in which time zone it is; absent for a plain number. */
  readonly isZoned?: boolean;
}

const DATE_TIME =
  /^(\d{4})-(\d{2})-(\d{2})[ T](\d{2}):(\d{2}):(\d{2}(?:\.\d+)?) ?(?:(Z|UTC)|([+-])(\d{2}):?(\d{2}))?$/;

/**
 * Reads `2023-11-16 18:15:46.6805900`, with a space or a `T`, any number of decimals, and `Z`, `+02:00` or nothing
 * (which is UTC) at the end. `null` when it is something else or no real date.
 */
export function parseDateTime(text: string): Timestamp | null {
  const match = DATE_TIME.exec(text);
  if (match === null) return null;
  const [, year, month, day, hours, minutes, seconds, utc, sign, offsetHours, offsetMinutes] = match;
  // biome-ignore-start lint/style/noRestrictedGlobals: calendar arithmetic needs neither the clock nor the time zone
  const dayMs = Date.UTC(Number(year), Number(month) - 1, Number(day));
  const date = new Date(dayMs);
  // biome-ignore-end lint/style/noRestrictedGlobals: calendar arithmetic
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return null;
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) >= 60) return null;
  let minuteOfDay = Number(hours) * 60 + Number(minutes);
  if (sign !== undefined) {
    if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return null;
    const offset = Number(offsetHours) * 60 + Number(offsetMinutes);
    minuteOfDay += sign === '+' ? -offset : offset;
  }
  const isZoned = utc !== undefined || sign !== undefined;
  return { dayMs, ms: minuteOfDay * 60_000 + Number(seconds) * 1000, isZoned };
}
