import { traceError } from '../simulator-error.ts';

/** Longest line or quoted record, in characters: enough for the hashes of a prompt of a million blocks. */
const LONGEST_RECORD = 2 ** 24;

/** Cuts a text that comes in pieces where records end, so that each piece handed on is whole. */
export class RecordSplitter {
  readonly #source: string;
  readonly #quoted: boolean;
  readonly #take: (text: string, firstLine: number) => void;
  #rest = '';
  #line = 1;
  #isFirst = true;

  /** @param options.quoted Whether a line may end inside of double quotes, as in CSV. */
  constructor(
    source: string,
    { quoted }: { readonly quoted: boolean },
    take: (text: string, firstLine: number) => void,
  ) {
    this.#source = source;
    this.#quoted = quoted;
    this.#take = take;
  }

  push(piece: string): void {
    let text = this.#rest === '' ? piece : this.#rest + piece;
    if (this.#isFirst && text.length > 0) {
      if (text.charCodeAt(0) === 0xfeff) text = text.slice(1);
      this.#isFirst = false;
    }
    const end = this.#quoted && text.includes('"') ? lastUnquotedNewline(text) : text.lastIndexOf('\n');
    this.#rest = text.slice(end + 1);
    if (this.#rest.length > LONGEST_RECORD) {
      throw traceError(
        'TRACE_MALFORMED_LINE',
        this.#source,
        this.#line + countNewlines(text, end + 1),
        `a record of at most ${LONGEST_RECORD} characters`,
        'a longer one, or a quote that is not closed',
      );
    }
    if (end !== -1) this.#hand(text.slice(0, end + 1));
  }

  end(): void {
    if (this.#rest !== '') this.#hand(this.#rest);
    this.#rest = '';
  }

  #hand(text: string): void {
    this.#take(text, this.#line);
    this.#line += countNewlines(text, text.length);
  }
}

function lastUnquotedNewline(text: string): number {
  let last = -1;
  let isQuoted = false;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === 34) isQuoted = !isQuoted;
    else if (code === 10 && !isQuoted) last = i;
  }
  return last;
}

function countNewlines(text: string, end: number): number {
  let lines = 0;
  for (let at = text.indexOf('\n'); at !== -1 && at < end; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}
