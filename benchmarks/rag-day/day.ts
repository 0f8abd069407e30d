import { readFileSync } from 'node:fs';
import { findReferenceFiles, REFERENCE_DATA, readTrace } from '@servegym/operators/traces';
import { pickRequests, randomUniform, streamKey, type Trace } from '@servegym/simulator';
import { readCsv } from '../../packages/profiles/src/tables/read-csv.ts';

/** What the study publishes of an hour of a winner. */
export type PublishedHour = ReturnType<typeof publishedHours>[number];
/** What it publishes of an hour of its day: the same for each of its winners. */
export type Hour = Pick<PublishedHour, 'requests' | 'inputTokens' | 'outputTokens'>;

/** Tokens of a KV block there. */
export const BLOCK_TOKENS = 64;
/** Copies of each recorded request there, each with content of its own. */
export const COPIES = 512;
/** Most that a copy shifts a conversation either way, ms. */
const SHIFT_MS = 30_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Requests are exchanged as often as this times the requests of an hour, to come near its tokens. */
const EXCHANGES = 60;
/** Distance from an hour's tokens, as shares of the input and of the output, below which the day's own requests stay. */
const NEAR = 0.05;

/**
 * The study's day from another revision of the recording: as many requests an hour, without one twice. Those of `day` in
 * that hour come first. The rest is of that hour on other days, exchanged until the hour's tokens are near, and where these
 * are too few, of the hours around it.
 */
export function chooseDay(recorded: Trace, hours: readonly Hour[], day: number, seed: number): number[] {
  const key = streamKey(seed, 'rag-day-choice');
  const count = recorded.arrivalMs.length;
  const taken = new Uint8Array(count);
  const chosen: number[] = [];
  let sum = 0;
  let draws = 0;
  const uniform = () => randomUniform(key, draws++, 0);
  for (const [hour, { requests, inputTokens, outputTokens }] of hours.entries()) {
    const from = chosen.length;
    sum += requests / COPIES;
    const wanted = Math.round(sum) - from;
    const distance = (i: number) => {
      const away = Math.abs(Math.floor((recorded.arrivalMs[i] % DAY_MS) / HOUR_MS) - hour);
      return 2 * Math.min(away, 24 - away) + (Math.floor(recorded.arrivalMs[i] / DAY_MS) === day ? 0 : 1);
    };
    const free = Array.from({ length: count }, (_, i) => ({ i, order: distance(i) + uniform() }))
      .filter(({ i }) => taken[i] === 0)
      .sort((a, b) => a.order - b.order)
      .map(({ i }) => i);
    const mine = free.slice(0, wanted);
    const others = free.slice(wanted).filter((i) => distance(i) <= 1);
    const off = (input: number, output: number) =>
      Math.abs((input * COPIES) / inputTokens - 1) + Math.abs((output * COPIES) / outputTokens - 1);
    const sumOf = (tokens: Int32Array) => mine.reduce((total, i) => total + tokens[i], 0);
    let [input, output] = [sumOf(recorded.inputTokens), sumOf(recorded.outputTokens)];
    for (let round = 0; round < EXCHANGES * wanted && others.length > 0; round++) {
      const a = Math.floor(uniform() * mine.length);
      const b = Math.floor(uniform() * others.length);
      const nextInput = input - recorded.inputTokens[mine[a]] + recorded.inputTokens[others[b]];
      const nextOutput = output - recorded.outputTokens[mine[a]] + recorded.outputTokens[others[b]];
      const present = off(input, output);
      if (off(nextInput, nextOutput) >= present || (present < NEAR && distance(mine[a]) === 0)) continue;
      [input, output] = [nextInput, nextOutput];
      [mine[a], others[b]] = [others[b], mine[a]];
    }
    for (const i of mine) taken[i] = 1;
    chosen.push(...mine);
  }
  return chosen;
}

/**
 * Copies of the chosen requests over a day. A copy shares no content with another, and shifts each conversation by up to
 * half a minute either way, less at the ends of the day.
 */
export function copyDay(
  recorded: Trace,
  chosen: readonly number[],
  hours: readonly Hour[],
  copies: number,
  seed: number,
): Trace {
  const key = streamKey(seed, 'rag-day-copies');
  const { prefixBlocks, followUps } = recorded;
  if (prefixBlocks === undefined) throw new Error('expected a trace with prefix blocks');
  const ratio = BLOCK_TOKENS / prefixBlocks.blockTokens;
  const numbers = new Map<number, number>();
  const rows = chosen.map((i, at) => {
    const begin = prefixBlocks.offsets[i];
    const blocks = Math.floor((prefixBlocks.offsets[i + 1] - begin) / ratio);
    const ids = Array.from({ length: blocks }, (_, block) => {
      // The chain up to a block's last part names the block.
      const id = prefixBlocks.ids[begin + (block + 1) * ratio - 1];
      const number = numbers.get(id) ?? numbers.size;
      numbers.set(id, number);
      return number;
    });
    let root = i;
    while (followUps !== undefined && followUps.previous[root] >= 0) root = followUps.previous[root];
    // A request keeps its minute of the hour, whichever day and hour it was recorded in.
    const hour = hourOf(hours, at);
    const recordedHour = Math.floor((recorded.arrivalMs[i] % DAY_MS) / HOUR_MS);
    const withinMs =
      recordedHour === hour ? recorded.arrivalMs[i] % HOUR_MS : HOUR_MS * randomUniform(key, at, -1);
    return { at, i, ids, root, atMs: hour * HOUR_MS + withinMs };
  });
  const requests = rows.length * copies;
  const arrival = new Float64Array(requests);
  for (let copy = 0; copy < copies; copy++) {
    for (const { at, atMs: ms, root } of rows) {
      const span = Math.min(SHIFT_MS, ms, DAY_MS - ms);
      arrival[copy * rows.length + at] = ms + span * (2 * randomUniform(key, copy, root) - 1);
    }
  }
  const order = Uint32Array.from(arrival, (_, i) => i).sort((a, b) => arrival[a] - arrival[b] || a - b);
  const total = rows.reduce((sum, { ids }) => sum + ids.length, 0) * copies;
  const ids = new Float64Array(total);
  const offsets = new Int32Array(requests + 1);
  const inputTokens = new Int32Array(requests);
  const outputTokens = new Int32Array(requests);
  for (const [at, request] of order.entries()) {
    const row = rows[request % rows.length];
    const first = Math.floor(request / rows.length) * numbers.size;
    const from = offsets[at];
    for (const [block, id] of row.ids.entries()) ids[from + block] = first + id;
    offsets[at + 1] = from + row.ids.length;
    inputTokens[at] = recorded.inputTokens[row.i];
    outputTokens[at] = recorded.outputTokens[row.i];
  }
  return {
    source: 'a day of RAGPulse',
    arrivalMs: Float64Array.from(order, (request) => arrival[request]),
    ...{ inputTokens, outputTokens, prefixBlocks: { blockTokens: BLOCK_TOKENS, ids, offsets } },
  };
}

function hourOf(hours: readonly Hour[], at: number): number {
  let sum = 0;
  return hours.findIndex(({ requests }) => {
    sum += requests / COPIES;
    return at < Math.round(sum);
  });
}

/** Day of the recording, from 0, that the study takes. */
const DAY = 4;

/** The day made from reference data, and what is published of its hours. */
export async function readDay(data: string, copies: number, seed: number) {
  const { ragPulse, ragPulseStudy } = REFERENCE_DATA;
  const [folder, hourly] = findReferenceFiles(data, [ragPulse, ragPulseStudy]);
  const published = publishedHours(readFileSync(hourly, 'utf8'), hourly);
  const hours = published.filter(({ scenario }) => scenario === 'static');
  const recorded = (await readTrace(folder)).trace;
  return { day: copyDay(recorded, chooseDay(recorded, hours, DAY, seed), hours, copies, seed), published };
}

const COLUMNS = [
  ...(['scenario', 'requests', 'input_tokens', 'output_tokens', 'compliant_requests'] as const),
  ...(['compliant_output_tokens', 'ttft_mean_ms', 'itl_mean_ms', 'gpu_hours'] as const),
] as const;

function publishedHours(text: string, source: string) {
  return readCsv(text, source, COLUMNS).map((row) => ({
    scenario: row.text('scenario'),
    ...{ requests: row.number('requests'), compliant: row.number('compliant_requests') },
    ...{ inputTokens: row.number('input_tokens'), outputTokens: row.number('output_tokens') },
    ...{ compliantTokens: row.number('compliant_output_tokens'), gpuHours: row.number('gpu_hours') },
    ...{ ttftMs: row.number('ttft_mean_ms'), itlMs: row.number('itl_mean_ms') },
  }));
}

/** So many minutes of each hour, from a random one on, with a gap of minutes between; and their seconds. */
export function partOfDay(day: Trace, minutes: number, seed: number, gap: number) {
  const key = streamKey(seed, 'rag-day-parts');
  const ids: number[] = [];
  const arrivalMs: number[] = [];
  for (let hour = 0; hour < 24; hour++) {
    const start = hour * HOUR_MS + randomUniform(key, hour, 0) * (HOUR_MS - 60_000 * minutes);
    for (const [i, ms] of day.arrivalMs.entries()) {
      if (ms < start || ms >= start + 60_000 * minutes) continue;
      ids.push(i);
      arrivalMs.push(ms - start + 60_000 * (minutes + gap) * hour);
    }
  }
  const part: Trace = { ...pickRequests(day, Int32Array.from(ids)), arrivalMs: new Float64Array(arrivalMs) };
  return { part, seconds: 24 * 60 * minutes };
}
