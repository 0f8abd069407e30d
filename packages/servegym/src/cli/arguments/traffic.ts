import { existsSync } from 'node:fs';
import {
  drawPrefixes,
  drawWorkload,
  llmserve,
  PUBLIC_WORKLOAD_IDS,
  type PublicWorkloadId,
  publicWorkload,
} from '@servegym/environments';
import { readTrace, type TraceFileOptions } from '@servegym/operators/traces';
import {
  closedBatch,
  counted,
  drawAdapters,
  drawLengths,
  msFromTicks,
  poissonTrace,
  type ReadTrace,
  SimulatorError,
  type Trace,
  type TraceReading,
} from '@servegym/simulator';
import { InvalidArgumentError } from 'commander';
import type { OptionTable, WordTable } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { showProgress } from '../output/progress.ts';
import { above, numberAbove, parseShares, whole, wholeNumber } from './options.ts';

/** Traffic as it is named on a command line: a file, or what is drawn. */
export type TrafficSource = {
  /** Shares of the base model and of LoRA adapters that are drawn. */
  readonly adapters?: readonly number[];
} & TrafficKind;

type TrafficKind =
  | { readonly kind: 'file'; readonly file: string; readonly concurrency?: number }
  /** An episode of a task of llmserve, by the seed. */
  | { readonly kind: 'task'; readonly task: string }
  | {
      readonly kind: 'drawn';
      /** Requests in flight, a new one when one ends. */
      readonly concurrency?: number;
      /** Whether all requests are there at the start. */
      readonly isBatch?: boolean;
      readonly draw: (options: TrafficOptions) => Trace;
    };

/** Most requests, and most tokens of one, as arguments take them. */
const MOST_REQUESTS = 100_000_000;
const MOST_TOKENS = 10_000_000;
const MOST_DRAWN_ADAPTERS = 10_000;
/** Most requests a second that are drawn: a choice. */
const MOST_RATE = 1000;
const MOST_HOURS = 24;
/** Requests for each of those in flight, when nobody says how many. */
const REQUESTS_EACH = 10;
/** Blocks of prefixes that are drawn: some 300 MB of them. */
const MOST_BLOCKS = 20_000_000;

/**
 * Models of traffic by what people call them, and by the ids of their traces; `arrivals` is the model of these, where those of the
 * own trace are too few to say how requests come to a GPU. The text that a prompt shares with an earlier one then lies as many
 * requests back as in the trace, not as many seconds.
 */
const MODELS: Readonly<
  Record<string, { readonly id: PublicWorkloadId; readonly arrivals?: PublicWorkloadId }>
> = {
  chat: { id: 'azure-conversation-2023' },
  code: { id: 'azure-code-2023' },
  rag: { id: 'ragpulse', arrivals: 'azure-conversation-2023' },
  agents: { id: 'mooncake-conversation' },
  ...Object.fromEntries(PUBLIC_WORKLOAD_IDS.map((id) => [id, { id }])),
};

const FORM =
  'a file, or drawn traffic: chat@12/s (also code, rag, agents; `,2h` for another length than 1 h), 2048:256@12/s, closed:32x2048:256, batch:64x1024:1024, or a task of llmserve';

/** `<traffic>` of a command. */
export const trafficWord = {
  traffic: {
    value: '<traffic>',
    parse: parseTraffic,
    help: 'a file of requests, or drawn: chat@12/s, 2048:256@12/s, closed:32x2048:256, batch:64x1024:1024, a task of llmserve',
  },
} as const satisfies WordTable;

export const trafficOptions = {
  rateScale: above('<factor>', 0, Number.MAX_VALUE, 'arrivals this many times as fast', 1),
  requests: whole('<n>', 1, MOST_REQUESTS, 'the first n; of closed:..., n (default: 10 for each in flight)'),
  seed: whole('<n>', 0, Number.MAX_SAFE_INTEGER, 'seed of drawn traffic and of accepted draft tokens', 0),
} as const satisfies OptionTable;

/** `--priority-shares` of commands that draw classes. */
export const priorityShares = {
  value: '<shares>',
  parse: parseShares,
  help: 'draw priority classes, the most urgent first: 0.2,0.8',
} as const;

/** Reads the notation of a traffic. @throws InvalidArgumentError */
function parseTraffic(whole: string): TrafficSource {
  const [, text, adapters] = /^(.*?)(?:,adapters=(.*))?$/s.exec(whole)!;
  if (adapters === undefined) return parseKind(text);
  const isCount = /^\d+$/.test(adapters);
  const equal = isCount ? Array<number>(wholeNumber(1, MOST_DRAWN_ADAPTERS)(adapters)).fill(1) : [];
  return {
    ...parseKind(text),
    adapters: isCount ? [0, ...equal] : parseShares(adapters.replaceAll(':', ',')),
  };
}

function parseKind(text: string): TrafficKind {
  if (existsSync(text)) return { kind: 'file', file: text };
  const [, kind, count, of] = /^(closed|batch):(\d+)x(.+)$/.exec(text) ?? [];
  if (kind === 'batch') {
    const drawn = { ...lengthsIn(of, text), requests: wholeNumber(1, MOST_REQUESTS)(count) };
    const draw = ({ seed }: TrafficOptions) =>
      drawn.range === undefined
        ? closedBatch(drawn.requests, drawn.inputTokens, drawn.outputTokens)
        : drawLengths({ ...drawn, seed });
    return { kind: 'drawn', isBatch: true, draw };
  }
  if (kind === 'closed') {
    const concurrency = wholeNumber(1, 1_000_000)(count);
    if (!/^\d+:/.test(of)) return { kind: 'file', file: of, concurrency };
    const lengths = lengthsIn(of, text);
    const draw = ({ requests = REQUESTS_EACH * concurrency, seed }: TrafficOptions) =>
      drawLengths({ ...lengths, requests, seed });
    return { kind: 'drawn', concurrency, draw };
  }
  const [, what, rate, length, unit] =
    /^([^@,]+?)(?:@([\d.]+)(?:\/s)?)?(?:,([\d.]+)(h|min|m|s))?$/.exec(text) ?? [];
  const seconds = length === undefined ? 3600 : Number(length) * SECONDS[unit];
  if (!(seconds > 0 && seconds <= 3600 * MOST_HOURS))
    throw new InvalidArgumentError(`Expected more than 0 and at most ${MOST_HOURS} h, got \`${text}\`.`);
  const perSecond = rate === undefined ? undefined : numberAbove(0, MOST_RATE)(rate);
  if (what !== undefined && /^\d+:\d/.test(what)) {
    if (perSecond === undefined)
      throw new InvalidArgumentError(`Expected a rate, such as ${what}@12/s, got \`${text}\`.`);
    const lengths = lengthsIn(what, text);
    return { kind: 'drawn', draw: ({ seed }) => poissonTrace(lengths, perSecond, seconds, seed) };
  }
  if (what !== undefined && Object.hasOwn(MODELS, what))
    return { kind: 'drawn', draw: (options) => modelTrace(what, perSecond, seconds, options) };
  if (llmserve.tasks.ids().includes(text)) return { kind: 'task', task: text };
  const [, drawn = ''] = /^([^@,]+)[@,]/.exec(text) ?? [];
  const isDrawn = Object.hasOwn(MODELS, drawn) || /^\d+:\d/.test(drawn);
  // The file is named as one that is not there.
  if (!isDrawn && /[./\\]/.test(text)) return { kind: 'file', file: text };
  throw new InvalidArgumentError(`Expected ${FORM}, got \`${text}\`.`);
}

const SECONDS: Readonly<Record<string, number>> = { h: 3600, min: 60, m: 60, s: 1 };

/** Lengths of drawn requests: nominal ones, or from a share of these, `range`, to all of them. */
function lengthsIn(text: string, whole: string) {
  const [, input, output, range] = /^(\d+):(\d+)(?:~([\d.]+))?$/.exec(text) ?? [];
  if (output === undefined)
    throw new InvalidArgumentError(`Expected lengths such as 2048:256 or 2048:256~0.8, got \`${whole}\`.`);
  const tokens = wholeNumber(1, MOST_TOKENS);
  const lengths = { inputTokens: tokens(input), outputTokens: tokens(output) };
  return { ...lengths, ...(range !== undefined && { range: numberAbove(0, 1)(range) }) };
}

interface OpenedTraffic {
  readonly trace: Trace;
  /** Priority class of each request, 0 is the most urgent, where they have any. */
  readonly priorities?: Uint8Array;
  /** Requests, or conversations where the trace has them, that are kept in flight, instead of the trace's arrivals. */
  readonly concurrency?: number;
  /** Whether all requests are there at the start. */
  readonly isBatch: boolean;
}

interface TrafficOptions {
  readonly seed: number;
  /** Requests to draw with those in flight. A file is not cut. */
  readonly requests?: number | undefined;
  readonly quiet?: boolean;
  readonly withoutPrefixes?: boolean;
}

/** Reads or draws the requests of a traffic; how a file was read is printed on standard error. @throws InputError */
export async function openTraffic(
  { adapters, ...source }: TrafficSource,
  options: TrafficOptions,
): Promise<OpenedTraffic> {
  if (adapters !== undefined) {
    const opened = await openTraffic(source, options);
    return { ...opened, trace: drawAdapters(opened.trace, adapters, options.seed) };
  }
  if (source.kind === 'task') return { ...taskTrace(source.task, options.seed), isBatch: false };
  const { concurrency } = source;
  if (source.kind === 'drawn')
    return { trace: source.draw(options), concurrency, isBatch: source.isBatch ?? false };
  const { trace, reading } = await readTraffic(source.file);
  if (!options.quiet) console.error(readingLine(source.file, reading, trace.arrivalMs.length));
  return { trace, concurrency, isBatch: false };
}

/** The requests of a traffic in which they arrive at times of their own. @throws InputError */
export async function openArrivals(source: TrafficSource, options: TrafficOptions): Promise<Trace> {
  const { trace, concurrency, isBatch } = await openTraffic(source, options);
  if (concurrency === undefined && !isBatch) return trace;
  throw new InputError(
    'expected traffic with arrivals, such as log.csv, chat@12/s or 2048:256@12/s, got closed:... or batch:...',
  );
}

/**
 * Reads a file of requests, and shows in a terminal how far it is.
 * @throws InputError that names `traffic convert` where the file needs it
 */
export async function readTraffic(
  file: string,
  options: Omit<TraceFileOptions, 'onProgress'> = {},
): Promise<ReadTrace> {
  try {
    const onProgress = (done: number, of: number) =>
      showProgress(`reading ${file}: ${Math.round((100 * done) / of)} %`);
    return await readTrace(file, { ...options, onProgress });
  } catch (error) {
    if (!(error instanceof SimulatorError)) throw error;
    const { field = '', message } = error;
    const advice = Object.hasOwn(CONVERT_OPTIONS, field)
      ? `. Type \`servegym traffic convert ${file} clean.jsonl ${CONVERT_OPTIONS[field]}\``
      : '';
    throw new InputError(`${message}${advice}`, { cause: error });
  } finally {
    showProgress('');
  }
}

/** Options of `servegym traffic convert` as they are typed, by those of the reader. */
const CONVERT_OPTIONS: Readonly<Record<string, string>> = {
  map: '--map arrival=NAME,input=NAME,output=NAME',
  sort: '--sort',
  unanswered: '--skip-unanswered',
  load: '--load 1',
  timeUnit: '--time-unit ms',
  prefixBlockTokens: '--prefix-block-tokens 16',
};

/** Format, columns and requests of a trace, in a line. */
export function readingLine(path: string, reading: TraceReading, requests: number): string {
  const { format, columns, arrivalUnit, unanswered, outOfOrder, conversations } = reading;
  const { arrival, input, output, prefix, adapter } = columns;
  const listed = (...parts: readonly (string | number | undefined)[]) => parts.filter(Boolean).join(', ');
  const count = (n: number | undefined, what: string) => n && `${n.toLocaleString('en-US')} ${what}`;
  const read = listed(
    arrival && `arrival ${arrival} (${arrivalUnit === 'date' ? 'date and time' : arrivalUnit})`,
    input && `input ${input}, output ${output}`,
    prefix && `prefix hashes ${prefix}`,
    adapter && `adapters ${adapter}`,
  );
  const counts = listed(
    counted(requests, 'request'),
    conversations && counted(conversations, 'conversation'),
    count(unanswered, 'that failed left out'),
    count(outOfOrder, 'put in order'),
  );
  return `${path}: ${[format, read, counts].filter(Boolean).join('; ')}`;
}

/** Traffic of a model, with the prefixes that its prompts share. @throws InputError */
function modelTrace(
  name: string,
  rate: number | undefined,
  seconds: number,
  { seed, withoutPrefixes = false }: TrafficOptions,
): Trace {
  const { id, arrivals: other } = MODELS[name];
  const model = publicWorkload(id);
  const { arrivals } = other === undefined ? model : publicWorkload(other);
  const own = model.arrivals.perSecond;
  if (rate === undefined && other !== undefined)
    throw new InputError(
      `${name}: expected a rate, such as ${name}@3/s, as its trace has ${own.toPrecision(1)} requests a second`,
    );
  const rateScale = rate === undefined ? 1 : rate / arrivals.perSecond;
  const drawn = drawWorkload({ ...model, arrivals }, seed, seconds, { rateScale });
  const { arrivalSeconds, inputTokens } = drawn;
  const trace = {
    source: name === id ? id : `${name} (${id})`,
    arrivalMs: Float64Array.from(arrivalSeconds, (second) => 1000 * second),
    inputTokens: Int32Array.from(inputTokens),
    outputTokens: Int32Array.from(drawn.outputTokens),
  };
  const { prefixes } = model;
  if (withoutPrefixes || prefixes === null) return trace;
  const blocks = inputTokens.reduce((sum, tokens) => sum + Math.ceil(tokens / prefixes.blockTokens), 0);
  if (blocks > MOST_BLOCKS)
    throw new InputError(
      `${name}: expected fewer requests, for a shorter time or a lower rate: ${inputTokens.length.toLocaleString('en-US')} share too many prefixes to hold`,
    );
  const timeScale = other === undefined ? 1 : (rate ?? own) / own;
  const times = arrivalSeconds.map((second) => timeScale * second);
  const { chunkTokens, ids, offsets } = drawPrefixes(prefixes, seed, times, inputTokens);
  return { ...trace, prefixBlocks: { blockTokens: chunkTokens, ids, offsets } };
}

/** Requests of an episode of a task, with their classes where the task has several. */
export function taskTrace(id: string, seed: number): Pick<OpenedTraffic, 'trace' | 'priorities'> {
  const task = llmserve.tasks.find(id)!;
  const { arrivalTicks, inputTokens, outputTokens, classes } = llmserve.drawRequests(task, seed);
  const trace = { source: id, arrivalMs: arrivalTicks.map(msFromTicks), inputTokens, outputTokens };
  const present = new Set(task.phases.flatMap(({ traffic }) => Object.keys(traffic)));
  return present.size > 1 ? { trace, priorities: classes } : { trace };
}
