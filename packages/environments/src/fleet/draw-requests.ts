import { portableMath, RandomStream, scaleRate, TICKS_PER_S } from '@servegym/simulator';
import { Column } from '../column.ts';
import { drawLogNormal, REQUEST_CLASSES } from '../tasks.ts';
import { drawWorkload, findWorkload } from '../workload/fitted-workload.ts';
import {
  BLOCK_TOKENS,
  ChunkedTexts,
  type FleetRequests,
  NO_REQUEST,
  traceFleetRequests,
} from './fleet-requests.ts';
import type { FleetTask, RateCurve, RequestStream } from './fleet-task.ts';

/** Hour of the day at which the episode of a seed begins: any for a part of a day, midnight for whole days and traces. */
export function startHour(task: FleetTask, seed: number): number {
  if (task.trace !== undefined) return 0;
  const hours = (task.windows * task.windowSeconds) / 3600;
  return hours >= 24 ? 0 : new RandomStream(seed, 'fleet start hour').uniform() * 24;
}

/** The requests of an episode: of its trace, or drawn. Each stream has random streams of its own, so that one does not shift another. */
export function drawFleetRequests(task: FleetTask, seed: number): FleetRequests {
  if (task.trace !== undefined) {
    const { requests, rateScale } = task.trace;
    return traceFleetRequests(scaleRate(requests, rateScale), requests.classes);
  }
  const table = new RequestBuilder();
  const hour = startHour(task, seed);
  for (const stream of task.streams) drawStream(table, task, stream, seed, hour);
  return table.build();
}

function drawStream(
  table: RequestBuilder,
  task: FleetTask,
  stream: RequestStream,
  seed: number,
  hour: number,
): void {
  const { name, turns, systemPrompt, retrieval, promptScale = 1 } = stream;
  const seconds = task.windows * task.windowSeconds;
  const kind = REQUEST_CLASSES.indexOf(stream.class);
  const shared = new RandomStream(seed, `${name} shared text`);
  const talk = new RandomStream(seed, `${name} turns`);
  const first = drawFirstRequests(stream, seed, seconds, hour);
  table.beginStream();
  for (let i = 0; i < first.arrivalSeconds.length; i++) {
    table.beginPrompt();
    let known = 0;
    if (systemPrompt !== undefined) {
      known = systemPrompt.tokens;
      table.append(shared.integer(1, systemPrompt.applications), known);
    }
    for (let passage = 0; passage < (retrieval?.passages ?? 0); passage++) {
      const { documents, tokens, exponent } = retrieval as NonNullable<typeof retrieval>;
      known += tokens;
      table.append(zipfRank(shared.uniform(), documents, exponent), known);
    }
    let prompt = Math.max(first.inputTokens[i], known + BLOCK_TOKENS);
    let answer = Math.max(1, first.outputTokens[i]);
    table.start(first.arrivalSeconds[i]);
    const count = turns === undefined ? 1 : geometric(talk, turns.mean);
    for (let turn = 1; turn < count; turn++) {
      const { added, thinkSeconds, maxPrompt } = turns as NonNullable<typeof turns>;
      const next = prompt + answer + Math.round(promptScale * drawLogNormal(talk, added));
      if (next > maxPrompt) break;
      // The next prompt repeats this one with its answer.
      table.appendOwn(prompt + answer);
      table.add(prompt, answer, kind);
      table.followAfter(drawLogNormal(talk, thinkSeconds));
      prompt = next;
      answer = drawOutput(stream, talk);
    }
    table.add(prompt, answer, kind);
  }
}

function drawFirstRequests(stream: RequestStream, seed: number, seconds: number, hour: number) {
  const { name, lengths, rate, promptScale = 1 } = stream;
  const rateAt = drawRate(rate, seed, name, seconds, hour);
  if (typeof lengths === 'string') {
    const model = findWorkload(lengths);
    if (model === undefined) throw new RangeError(`No fitted workload \`${lengths}\``);
    const scale = 1 / model.arrivals.perSecond;
    return drawWorkload(model, seed, seconds, { rateScale: (second) => rateAt(second) * scale, promptScale });
  }
  const arrivals = new RandomStream(seed, `${name} arrivals`);
  const sizes = new RandomStream(seed, `${name} lengths`);
  const arrivalSeconds: number[] = [];
  const inputTokens: number[] = [];
  const outputTokens: number[] = [];
  for (let second = 0; second < seconds; second++) {
    const gap = 1 / rateAt(second);
    for (let at = arrivals.exponential(gap); at < 1; at += arrivals.exponential(gap)) {
      arrivalSeconds.push(second + at);
      inputTokens.push(Math.round(promptScale * drawLogNormal(sizes, lengths.prompt)));
      outputTokens.push(Math.round(drawLogNormal(sizes, lengths.output)));
    }
  }
  return { arrivalSeconds, inputTokens, outputTokens };
}

const DAY_S = 86_400;

/** Draws the rate of an episode: arrivals a second in each second after the hour at which it begins. */
function drawRate(
  { perSecond, peakToTrough, peakHour = 14, surges = [] }: RateCurve,
  seed: number,
  name: string,
  seconds: number,
  startHour: number,
): (second: number) => number {
  const swing = (peakToTrough - 1) / (peakToTrough + 1);
  const drawn = surges.flatMap((kind, at) => {
    const draws = new RandomStream(seed, `${name} surges ${at}`);
    const list = [];
    // One that began before the episode may still last.
    let begin = -kind.seconds[1] + draws.exponential(kind.everySeconds);
    while (begin < seconds) {
      const [shortest, longest] = kind.seconds;
      const [least, most] = kind.factor;
      const end = begin + shortest + (longest - shortest) * draws.uniform();
      /** Rate at its height over the rate without it, less 1. */
      const added = least + (most - least) * draws.uniform() - 1;
      list.push({ begin, end, ramp: kind.rampSeconds, added });
      begin += draws.exponential(kind.everySeconds);
    }
    return list;
  });
  return (second) => {
    const daily = portableMath.cos((2 * Math.PI * (startHour * 3600 + second - peakHour * 3600)) / DAY_S);
    let factor = 1;
    for (const { begin, end, ramp, added } of drawn) {
      if (second < begin || second >= end) continue;
      factor += added * Math.min(1, (second - begin) / ramp, (end - second) / ramp);
    }
    return perSecond * (1 + swing * daily) * factor;
  };
}

/** Output of a later turn. */
function drawOutput({ lengths }: RequestStream, draws: RandomStream): number {
  if (typeof lengths === 'string') throw new RangeError('Turns need log-normal lengths');
  return Math.round(drawLogNormal(draws, lengths.output));
}

/** Rank 1 .. count with a probability in proportion to rank^-exponent, by the inverse of the continuous law. */
function zipfRank(uniform: number, count: number, exponent: number): number {
  const most =
    exponent === 1
      ? portableMath.log(count + 1)
      : (portableMath.pow(count + 1, 1 - exponent) - 1) / (1 - exponent);
  const at = uniform * most;
  const rank =
    exponent === 1 ? portableMath.exp(at) : portableMath.pow(1 + (1 - exponent) * at, 1 / (1 - exponent));
  return Math.min(count, Math.floor(rank));
}

/** A whole number from 1 with this mean. */
function geometric(draws: RandomStream, mean: number): number {
  return mean <= 1
    ? 1
    : 1 + Math.floor(portableMath.log(1 - draws.uniform()) / portableMath.log(1 - 1 / mean));
}

/** The chain in front of a prompt's first chunk, and numbers of texts that a chain may be followed by. */
const ROOT = -1;
const TEXTS = 2 ** 20;

const ints = () => new Column(new Int32Array());
const floats = () => new Column(new Float64Array());

/** Builds the table of an episode's requests, stream by stream. A later turn stands behind the turn before it. */
class RequestBuilder {
  readonly #input = ints();
  readonly #output = ints();
  readonly #classes = new Column(new Uint8Array());
  readonly #next = ints();
  readonly #think = floats();
  /** Ticks from the last answer to the next request added. */
  #thinkTicks = 0;
  /** First requests of each stream, and their ticks of arrival. */
  readonly #streams: { readonly requests: Column<Int32Array>; readonly ticks: Column<Float64Array> }[] = [];
  readonly #ids = ints();
  readonly #ends = ints();
  readonly #offsets = ints();
  /** Chunks by the chunk before them and their text. */
  readonly #known = new Map<number, number>();
  #chunkCount = 0;
  /** Chunks of the prompt that is being built. */
  readonly #promptIds: number[] = [];
  readonly #promptEnds: number[] = [];
  #chain = ROOT;

  beginStream(): void {
    this.#streams.push({ requests: ints(), ticks: floats() });
  }

  beginPrompt(): void {
    this.#promptIds.length = 0;
    this.#promptEnds.length = 0;
    this.#chain = ROOT - this.#streams.length;
  }

  /** Lets the prompt go on with a text that others of its stream may have in the same place, up to token `end`. */
  append(text: number, end: number): void {
    const key = this.#chain * TEXTS + text;
    let id = this.#known.get(key);
    if (id === undefined) {
      id = this.#chunkCount++;
      this.#known.set(key, id);
    }
    this.#push(id, end);
  }

  /** Lets the prompt go on with a text of its own, which later turns repeat, up to token `end`. */
  appendOwn(end: number): void {
    this.#push(this.#chunkCount++, end);
  }

  /** The next request added arrives by itself. */
  start(seconds: number): void {
    const { requests, ticks } = this.#streams[this.#streams.length - 1];
    requests.push(this.#input.length);
    ticks.push(Math.round(seconds * TICKS_PER_S));
  }

  /** The next request added follows the answer to the last one. */
  followAfter(thinkSeconds: number): void {
    this.#next.set(this.#next.length - 1, this.#input.length);
    this.#thinkTicks = Math.round(thinkSeconds * TICKS_PER_S);
  }

  /** Adds a request with the prompt as it stands. */
  add(input: number, output: number, kind: number): void {
    this.#think.push(this.#thinkTicks);
    this.#thinkTicks = 0;
    this.#offsets.push(this.#ids.length);
    this.#input.push(input);
    this.#output.push(output);
    this.#classes.push(kind);
    this.#next.push(NO_REQUEST);
    for (let at = 0; at < this.#promptIds.length; at++) {
      this.#ids.push(this.#promptIds[at]);
      this.#ends.push(this.#promptEnds[at]);
    }
  }

  build(): FleetRequests {
    this.#offsets.push(this.#ids.length);
    return {
      inputTokens: this.#input.values,
      outputTokens: this.#output.values,
      classes: this.#classes.values,
      ...this.#mergeStreams(),
      nextTurn: this.#next.values,
      thinkTicks: this.#think.values,
      texts:
        this.#chunkCount === 0
          ? null
          : new ChunkedTexts(this.#ids.values, this.#ends.values, this.#offsets.values),
    };
  }

  /** A chunk without the part of its last block that the text behind it shares. */
  #push(id: number, end: number): void {
    this.#promptIds.push(id);
    this.#promptEnds.push(end - (end % BLOCK_TOKENS));
    this.#chain = id;
  }

  #mergeStreams(): Pick<FleetRequests, 'starts' | 'startTicks'> {
    const streams = this.#streams;
    const count = streams.reduce((sum, { requests }) => sum + requests.length, 0);
    const starts = new Int32Array(count);
    const startTicks = new Float64Array(count);
    const at = streams.map(() => 0);
    for (let i = 0; i < count; i++) {
      let first = -1;
      let tick = Number.POSITIVE_INFINITY;
      for (let stream = 0; stream < streams.length; stream++) {
        const { ticks } = streams[stream];
        if (at[stream] < ticks.length && ticks.get(at[stream]) < tick) {
          first = stream;
          tick = ticks.get(at[stream]);
        }
      }
      starts[i] = streams[first].requests.get(at[first]++);
      startTicks[i] = tick;
    }
    return { starts, startTicks };
  }
}
