import type { ReadTrace } from './request-reader.ts';

/** Reads a trace piece by piece, so that its file need not be in memory. */
export interface TraceParser {
  /** Takes the next piece of the text, cut anywhere. @throws {TraceError} with the line that is wrong. */
  push(text: string): void;
  /** Says that the text is at its end. @throws {TraceError} */
  end(): ReadTrace;
}
