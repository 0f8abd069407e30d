/** What a column means to a trace. */
export interface ColumnMeaning {
  readonly field: 'arrival' | 'input' | 'output' | 'prefix';
  /** ms in one unit of a plain number; a date and time needs none. */
  readonly unitMs?: number;
}

const ARRIVAL_SECONDS = ['arrival', 'arrivals', 'arrivaltime', 'arrivedat', 'starttime', 'time'];
const ARRIVAL_MS = ['arrivalms', 'arrivaltimems', 'timestampms'];
const INPUT = [
  'contexttokens',
  'input',
  'inputlen',
  'inputlength',
  'inputtokens',
  'inputtoks',
  'numprefilltokens',
  'promptlen',
  'prompttokens',
  'requesttokens',
];
const OUTPUT = [
  'completiontokens',
  'generatedtokens',
  'numdecodetokens',
  'output',
  'outputlen',
  'outputlength',
  'outputtokens',
  'outputtoks',
  'responsetokens',
];

const MEANINGS = new Map<string, ColumnMeaning>([
  ...ARRIVAL_SECONDS.map((name) => [name, { field: 'arrival', unitMs: 1000 }] as const),
  ...ARRIVAL_MS.map((name) => [name, { field: 'arrival', unitMs: 1 }] as const),
  ...INPUT.map((name) => [name, { field: 'input' }] as const),
  ...OUTPUT.map((name) => [name, { field: 'output' }] as const),
  ['hashids', { field: 'prefix' }],
]);

/**
 * What a column or key of this name holds, or `undefined`. Case, spaces and `_ - .` do not matter.
 * A number under `timestamp` is in `timestampUnitMs`: traces in CSV count seconds, Mooncake's JSONL counts ms.
 */
export function columnMeaning(name: string, timestampUnitMs: number): ColumnMeaning | undefined {
  const plain = name.toLowerCase().replace(/[\s_.-]/g, '');
  if (plain === 'timestamp') return { field: 'arrival', unitMs: timestampUnitMs };
  return MEANINGS.get(plain);
}

/** How a missing column is named in messages. */
export const COLUMN_EXAMPLES = {
  arrival: 'TIMESTAMP, arrival_ms or arrival_time',
  input: 'ContextTokens, input_tokens or input_length',
  output: 'GeneratedTokens, output_tokens or output_length',
} as const;
