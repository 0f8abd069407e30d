import { traceError } from '../simulator-error.ts';

/** Longest line or quoted record, in characters: enough for the hashes of a prompt of a million blocks. */
const LONGEST_RECORD = 2 ** 24;

/**
 * Cuts a text that comes in pieces where records end, so that each piece handed on is whole.
 * @param quoted Whether a line may end inside of double quotes, as in CSV.
 */
export function recordSplitter(
  source: string,
  quoted: boolean,
  take: (text: string, firstLine: number) => void,
) {
  let rest = '';
  let line = 1;
  let isFirst = true;
  const hand = (text: string) => {
    take(text, line);
    line += countNewlines(text, text.length);
  };
  return {
    push(piece: string): void {
      let text = rest === '' ? piece : rest + piece;
      if (isFirst && text.length > 0) {
        if (text.charCodeAt(0) === 0xfeff) text = text.slice(1);
        isFirst = false;
      }
      const end = quoted && text.includes('"') ? lastUnquotedNewline(text) : text.lastIndexOf('\n');
      rest = text.slice(end + 1);
      if (rest.length > LONGEST_RECORD) {
        const expected = `a record of at most ${LONGEST_RECORD} characters`;
        const got = 'a longer one, or a quote that is not closed';
        throw traceError('TRACE_MALFORMED_LINE', source, line + countNewlines(text, end + 1), expected, got);
      }
      if (end !== -1) hand(text.slice(0, end + 1));
    },
    end(): void {
      if (rest !== '') hand(rest);
      rest = '';
    },
  };
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
