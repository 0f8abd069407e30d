import { nextTurn } from '../sessions/turns.ts';
import { type LimitedJsonReading, readLimitedJson } from './read-limited-json.ts';

/** A longer text waits for a turn, characters. */
const LONG_TEXT = 32_768;

/** Parses the JSON of a client within the limits of `readLimitedJson`; a long text in a turn of the client. */
export function readClientJson(
  text: string,
  client?: string,
): LimitedJsonReading | Promise<LimitedJsonReading> {
  if (text.length <= LONG_TEXT) return readLimitedJson(text);
  return nextTurn(client).then(() => readLimitedJson(text));
}
