import { MAX_REQUEST_TOKENS } from '../engine/engine-config.ts';
import { quoteField, type SimulatorError, traceError } from '../simulator-error.ts';
import { type Entry, isEntry, parseEntry } from './benchmark-result.ts';
import { parseDateTime, type ReadTrace } from './request-reader.ts';
import type { TraceReading } from './trace.ts';
import { TraceBuilder } from './trace-builder.ts';

/** Parsed JSON and the file it comes from. */
export interface JsonDocument {
  readonly source: string;
  readonly value: unknown;
}

/** A request that was added, and when its answer ended in the recording, ms. */
interface Answered {
  readonly request: number;
  readonly endMs: number;
}

/** Whether parsed JSON looks like a session that `agentSessionsTrace` takes. */
export function isAgentSession(value: unknown): boolean {
  return isEntry(value) && Array.isArray(value.requests) && 'block_size' in value;
}

/**
 * Reads sessions of agents as kv-cache-tester publishes them: a document each, of requests with a start `t` (s), prompt
 * `in` and answer `out` (tokens), `hash_ids` of blocks, `api_time` and `think_time` (s), and subagents, whose first
 * request follows the request before it in the list. Sessions start together and share no blocks.
 * @throws {SimulatorError} naming the file and what is wrong.
 */
export function agentSessionsTrace(documents: readonly JsonDocument[], source: string): ReadTrace {
  const blockTokens = blockSizeOf(documents[0]);
  const builder = new TraceBuilder(source, { prefixBlockTokens: blockTokens, sort: true });
  let unanswered = 0;
  let firstId = 0;
  for (const document of documents) {
    const size = blockSizeOf(document);
    if (size !== blockTokens)
      throw wrong(document.source, `blocks of ${blockTokens} tokens, as the others have`, size);
    let lastId = -1;
    const idsOf = (entry: Entry): number[] => {
      if (!Array.isArray(entry.hash_ids)) return [];
      return entry.hash_ids.map((id) => {
        if (Number.isSafeInteger(id) && id > lastId) lastId = id;
        return Number.isSafeInteger(id) && id >= 0 ? firstId + id : Number.NaN;
      });
    };
    const add = (requests: readonly unknown[], startMs: number, start: Answered | undefined): void => {
      let previous = start;
      for (const [i, entry] of requests.entries()) {
        if (!isEntry(entry)) throw wrong(document.source, 'requests to be objects', entry);
        const ms = startMs + 1000 * seconds(document.source, entry, 't');
        if (Array.isArray(entry.requests)) {
          add(entry.requests, ms, previous);
          continue;
        }
        if (entry.out === 0) {
          unanswered += 1;
          continue;
        }
        const input = builder.length(i + 1, 'in', entry.in);
        const output = builder.length(i + 1, 'out', entry.out);
        const hashIds = idsOf(entry);
        const end = Math.floor((input + output) / blockTokens);
        const request = builder.add(i + 1, { dayMs: 0, ms }, input, output, {
          ...{ hashIds, answerHashIds: answerIds(hashIds, nextTurn(requests, i), idsOf, end) },
          ...(previous !== undefined && {
            follows: {
              previous: previous.request,
              thinkMs:
                previous === start
                  ? Math.max(0, ms - previous.endMs)
                  : 1000 * seconds(document.source, entry, 'think_time'),
            },
          }),
        });
        previous = { request, endMs: ms + 1000 * seconds(document.source, entry, 'api_time') };
      }
    };
    add((document.value as { requests: unknown[] }).requests, 0, undefined);
    firstId += lastId + 1;
  }
  const columns = { arrival: 't', input: 'in', output: 'out', prefix: 'hash_ids' };
  return readAs('sessions of agents', columns, builder, documents.length, unanswered);
}

/** The request behind number `i` in a list that may have subagents. */
function nextTurn(requests: readonly unknown[], i: number): unknown {
  let at = i + 1;
  for (let entry = requests[at]; isEntry(entry) && Array.isArray(entry.requests); entry = requests[at])
    at += 1;
  return requests[at];
}

/** Ids of the blocks up to `end` that the answer fills, where the next request repeats prompt and answer. */
function answerIds(
  own: readonly number[],
  next: unknown,
  idsOf: (entry: Entry) => number[],
  end: number,
): readonly number[] {
  if (!isEntry(next) || end <= own.length || own.length === 0) return [];
  const ids = idsOf(next);
  return ids[own.length - 1] === own.at(-1) ? ids.slice(own.length, end) : [];
}

function blockSizeOf({ source, value }: JsonDocument): number {
  const size = isAgentSession(value) ? (value as Entry).block_size : undefined;
  if (Number.isSafeInteger(size) && (size as number) >= 1) return size as number;
  throw wrong(source, 'a session of an agent, with `block_size` and `requests`', value);
}

/**
 * Makes rows of TraceLab requests of conversations, and answers others as they are. A round arrives when the last of what
 * it answers is there, which `timing_events` tell, and follows the end of the round before it in its session.
 */
export function traceLabRounds(): (row: Entry) => Entry {
  const ends = new Map<unknown, number>();
  return (row) => {
    const events = row.timing_events;
    if (!Array.isArray(events) || !events.every(isEntry) || events.length === 0) return row;
    const begins = events.findIndex(
      ({ event_type: type }) => type !== 'user_message' && type !== 'tool_result',
    );
    const { timestamp } = events[Math.max(0, (begins === -1 ? events.length : begins) - 1)];
    const previous = ends.get(row.session_id);
    const at = msOf(timestamp);
    ends.set(row.session_id, msOf(events.at(-1)!.timestamp));
    return { ...row, timestamp, ...(previous !== undefined && { delay: Math.max(0, at - previous) }) };
  };
}

function msOf(timestamp: unknown): number {
  const { dayMs, ms } = parseDateTime(String(timestamp)) ?? { dayMs: Number.NaN, ms: 0 };
  return dayMs + ms;
}

/** RAGPulse's files: the requests, and the tokens of each part that a prompt may have. */
export interface RagPulseFiles {
  readonly requests: string;
  readonly partLengths: readonly string[];
}

/** Tokens of the blocks by which prompts of RAGPulse share what they begin with: vLLM's. */
const RAG_BLOCK_TOKENS = 16;
const RAG_PARTS = ['sys_prompt', 'passages_ids', 'history', 'web_search', 'user_input'] as const;

/**
 * Reads RAGPulse: requests with a `session_id`, a `timestamp` (s), and the ids of the parts of their prompts. Prompts
 * share blocks as far as they begin with the same parts. RAGPulse does not record when answers ended: the time between
 * two arrivals of a session is its think time.
 * @throws {SimulatorError} with the line that is wrong.
 */
export function ragPulseTrace({ requests, partLengths }: RagPulseFiles, source: string): ReadTrace {
  const lengths = new Map<number, number>();
  for (const text of partLengths) {
    for (const { entry } of jsonLines(text, source)) {
      const { token_length: length, ...ids } = entry;
      lengths.set(Number(Object.values(ids)[0]), Number(length));
    }
  }
  const builder = new TraceBuilder(source, { prefixBlockTokens: RAG_BLOCK_TOKENS, sort: true });
  const blocksOf = partBlocks(lengths);
  const rows = jsonLines(requests, source)
    .map(({ entry, line }) => ({
      entry,
      line,
      s: seconds(source, { t: Number(entry.timestamp) }, 't', line),
    }))
    .sort((a, b) => a.s - b.s);
  const sessions = new Map<unknown, { readonly request: number; readonly s: number }>();
  for (const { entry, line, s } of rows) {
    const input = builder.length(line, 'input_length', entry.input_length);
    const output = builder.length(line, 'output_length', entry.output_length);
    const previous = sessions.get(entry.session_id);
    const request = builder.add(line, { dayMs: 0, ms: 1000 * s }, input, output, {
      hashIds: blocksOf(partsOf(entry, source, line), input),
      ...(previous !== undefined && {
        follows: { previous: previous.request, thinkMs: 1000 * (s - previous.s) },
      }),
    });
    sessions.set(entry.session_id, { request, s });
  }
  const columns = { input: 'input_length', output: 'output_length', prefix: 'hash_ids' };
  return readAs('RAGPulse', { arrival: 'timestamp', ...columns }, builder, sessions.size);
}

function partsOf(entry: Entry, source: string, line: number): number[] {
  const parts = isEntry(entry.hash_ids) ? entry.hash_ids : {};
  return RAG_PARTS.flatMap((name) => {
    const ids = parts[name];
    if (Array.isArray(ids) && ids.every((id) => Number.isSafeInteger(id))) return ids as number[];
    throw traceError('TRACE_HASH_IDS', source, line, `a list of whole numbers as ${name}`, quoteField(ids));
  });
}

/**
 * Numbers the blocks of prompts that are made of parts, as far as these reach: equal numbers for blocks behind which all parts
 * are equal.
 */
function partBlocks(lengths: ReadonlyMap<number, number>) {
  const root: PartPath = { firstId: 0, next: new Map() };
  let known = 0;
  return (parts: readonly number[], inputTokens: number): number[] => {
    const ids: number[] = [];
    let path = root;
    let end = 0;
    for (const part of parts) {
      end = Math.min(inputTokens, end + (lengths.get(part) ?? inputTokens));
      const blocks = Math.floor(end / RAG_BLOCK_TOKENS) - ids.length;
      let next = path.next.get(part);
      if (next === undefined) {
        next = { firstId: known, next: new Map() };
        path.next.set(part, next);
        known += Math.ceil((lengths.get(part) ?? MAX_REQUEST_TOKENS) / RAG_BLOCK_TOKENS) + 1;
      }
      for (let block = 0; block < blocks; block += 1) ids.push(next.firstId + block);
      path = next;
    }
    return ids;
  };
}

/** The parts from a prompt's start to one of them. */
interface PartPath {
  /** Of the blocks that end in the last part. */
  readonly firstId: number;
  readonly next: Map<number, PartPath>;
}

/** Characters of a token, about, in English. */
const CHARACTERS_PER_TOKEN = 4;
const TEXT_BLOCK_TOKENS = 16;

/** Whether parsed JSON looks like conversations that `conversationsTrace` takes. */
export function isConversations(value: unknown): boolean {
  const [first] = Array.isArray(value) ? value : [];
  return isEntry(first) && (Array.isArray(first.conversations) || Array.isArray(first.messages));
}

/**
 * Reads conversations with their texts, as ShareGPT has them: a list of objects with `conversations` (`from`, `value`) or
 * `messages` (`role`, `content`). Each answer is a request whose prompt is all that was said before; four characters
 * count as a token. There are no times: conversations start together, and a follow-up is sent when the answer is there.
 * @throws {SimulatorError} naming the entry that is wrong.
 */
export function conversationsTrace(value: readonly unknown[], source: string): ReadTrace {
  const builder = new TraceBuilder(source, { prefixBlockTokens: TEXT_BLOCK_TOKENS, sort: true });
  let conversations = 0;
  let firstId = 0;
  for (const [i, entry] of value.entries()) {
    const messages = isEntry(entry) ? (entry.conversations ?? entry.messages) : undefined;
    if (!Array.isArray(messages))
      throw wrong(source, `\`conversations\` or \`messages\` in entry ${i + 1}`, entry);
    let tokens = 0;
    let previous: number | undefined;
    for (const message of messages) {
      const { isAnswer, length } = messageIn(message, source, i + 1);
      if (isAnswer && tokens > 0 && length > 0) {
        const ids = Array.from(
          { length: Math.floor((tokens + length) / TEXT_BLOCK_TOKENS) },
          (_, b) => firstId + b,
        );
        const ofPrompt = Math.floor(tokens / TEXT_BLOCK_TOKENS);
        previous = builder.add(i + 1, { dayMs: 0, ms: 0 }, tokens, length, {
          ...{ hashIds: ids.slice(0, ofPrompt), answerHashIds: ids.slice(ofPrompt) },
          ...(previous !== undefined && { follows: { previous, thinkMs: 0 } }),
        });
      }
      tokens += length;
    }
    if (previous !== undefined) conversations += 1;
    firstId += Math.ceil(tokens / TEXT_BLOCK_TOKENS);
  }
  const columns = { input: 'the messages before an answer', output: 'the answer' };
  return readAs('conversations, 4 characters a token', columns, builder, conversations);
}

function messageIn(message: unknown, source: string, entry: number) {
  const { from, role = from, value, content = value } = isEntry(message) ? message : {};
  if (typeof role !== 'string' || typeof content !== 'string') {
    const fields = '`from` and `value`, or `role` and `content`';
    throw wrong(source, `messages of entry ${entry} with ${fields}`, message);
  }
  return {
    isAnswer: ['gpt', 'assistant', 'chatgpt', 'bing', 'bard'].includes(role),
    length: Math.ceil(content.length / CHARACTERS_PER_TOKEN),
  };
}

function readAs(
  format: string,
  columns: TraceReading['columns'],
  builder: TraceBuilder,
  conversations: number,
  unanswered = 0,
): ReadTrace {
  const reading = { format, columns, arrivalUnit: 's' as const, unanswered, outOfOrder: 0, conversations };
  return { trace: builder.build().trace, reading };
}

function jsonLines(text: string, source: string): { readonly entry: Entry; readonly line: number }[] {
  return text
    .split('\n')
    .flatMap((content, i) =>
      content.trim() === '' ? [] : [{ entry: parseEntry(content, source, i + 1), line: i + 1 }],
    );
}

/** A time in s, 0 where there is none. */
function seconds(source: string, entry: Entry, name: string, line: number | null = null): number {
  const { [name]: value = 0 } = entry;
  if (typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY) return value;
  throw traceError('TRACE_TIMESTAMP', source, line, `${name} to be seconds from 0`, quoteField(value));
}

function wrong(source: string, expected: string, got: unknown): SimulatorError {
  return traceError('TRACE_CONVERSATION', source, null, expected, quoteField(got));
}
