import type { Engine } from '../engine/engine.ts';
import type { EngineRequest } from '../engine/engine-log.ts';
import { portableMath } from '../portable-math.ts';
import { randomUniform, streamKey } from '../random/counter-random.ts';
import type { PolicyFunctions, PolicyRun } from './policy.ts';
import { PrefixIndex } from './prefix-index.ts';
import { type Candidates, FleetView, type RequestView, type Target } from './views.ts';

/** Time over which the rate of first tokens is averaged, s: a choice. */
const RATE_MEMORY_S = 30;
/** Replicas that a `PrefixIndex` knows. */
const INDEXED = 32;
const NONE: Candidates = { targets: [], views: [] };

type Prompt = Pick<EngineRequest, 'input' | 'prefix'>;

/**
 * Chooses a replica for each request, and refuses requests, as the functions of a policy say. Where it has none, or one
 * answers what cannot be used, the standard functions decide.
 */
export class Dispatcher {
  /** Replicas that the next choice is among. */
  candidates: Candidates = NONE;
  held = 0;
  /** Seconds of queue as of the last scrape; `Infinity` when requests wait and none has been served. */
  queueSeconds = 0;
  /** Time of the present choice, s. */
  seconds = 0;
  /** The functions that the policy lacks. Of those, `score` of none is a choice in turns. */
  standard: PolicyFunctions;
  declare private readonly run: PolicyRun;
  private readonly view = new FleetView(this);
  /** First tokens and seconds, each weighted by exp(-age / `RATE_MEMORY_S`). */
  private recentStarts = 0;
  private recentSeconds = 0;
  private turn = 0;
  private draws = 0;
  declare private readonly key: number;
  /** Of every `INDEXED` replicas. */
  private readonly indexes: PrefixIndex[] = [];
  private matches = new Float64Array(INDEXED);
  /** The prompt that the next choice is for, until its matches are looked up. */
  private prompt: Prompt | null = null;
  private isMatched = false;
  /** Whether what is sent is remembered: where `prefix_match` has been read. */
  private remembers: boolean;

  constructor(run: PolicyRun, standard: PolicyFunctions, seed: number, remembers = false) {
    this.run = run;
    this.standard = standard;
    this.key = streamKey(seed, 'policy');
    this.remembers = remembers;
  }

  /** Whether a choice looks at the replicas' metrics. */
  get looks(): boolean {
    const { functions } = this.run;
    const { score = this.standard.score, admit = this.standard.admit, disaggregate } = functions;
    return score !== undefined || admit !== undefined || disaggregate !== undefined;
  }

  get promptTokens(): number {
    return this.prompt?.input ?? 1;
  }

  random(): number {
    return randomUniform(this.key, this.draws++, 0);
  }

  /** Takes note of `waiting` requests in all queues after a scrape. */
  measureQueue(waiting: number): void {
    this.queueSeconds = waiting === 0 ? 0 : (waiting * this.recentSeconds) / this.recentStarts;
  }

  /** Takes note of the first tokens of an interval. */
  measure(starts: number, seconds: number): void {
    const kept = portableMath.exp(-seconds / RATE_MEMORY_S);
    this.recentStarts = this.recentStarts * kept + starts;
    this.recentSeconds = this.recentSeconds * kept + seconds;
  }

  nextInTurns(): Target {
    const { targets } = this.candidates;
    return targets[this.turn++ % targets.length];
  }

  admits(request: RequestView): boolean {
    const { run, view, seconds, standard } = this;
    const { admit } = run.functions;
    if (admit !== undefined) {
      const call = () => admit(request, view, seconds);
      const asked = run.ask('admit', 'true, false or a probability', call, (answer) => {
        if (typeof answer === 'number' && answer >= 0 && answer <= 1) return this.random() < answer;
        return typeof answer === 'boolean' ? answer : undefined;
      });
      if (asked !== undefined) return asked;
    }
    return standard.admit === undefined || standard.admit(request, view, seconds) === true;
  }

  /** Whether a request is prefilled on a replica of its own; `candidates` are those that would decode it. */
  disaggregates(request: RequestView): boolean {
    const { run, view, seconds } = this;
    const { disaggregate } = run.functions;
    if (disaggregate === undefined) return true;
    const take = (answer: unknown) => (typeof answer === 'boolean' ? answer : undefined);
    const call = () => disaggregate(request, view, seconds);
    return run.ask('disaggregate', 'true or false', call, take) ?? true;
  }

  /** The replica for a request, among the candidates. There is at least one. */
  choose(
    request: RequestView,
    prompt: Prompt,
    among: Candidates = this.candidates,
    standard: PolicyFunctions = this.standard,
  ): Target {
    const { targets } = among;
    const { functions } = this.run;
    this.candidates = among;
    this.prompt = prompt;
    this.isMatched = false;
    if (functions.score === undefined) return this.best(request, standard) ?? targets[0];
    if (targets.length === 1) return targets[0];
    const { turn } = this;
    try {
      const best = this.best(request, functions);
      if (best !== null) return best;
      this.run.unexpected('score', 'a number above -Infinity for a replica', 'none');
    } catch (error) {
      if (error !== UNEXPECTED) this.run.thrown('score', error);
    }
    this.turn = turn;
    return this.best(request, standard) ?? targets[0];
  }

  sent(target: Target, { input, prefix }: Prompt): void {
    target.sent++;
    target.queuedTokens += input;
    target.routed++;
    if (!this.remembers || !prefix) return;
    const { index } = target.traits;
    this.index(index).record(prefix, index % INDEXED);
  }

  /** Tokens of the present prompt that a replica was sent before. */
  matchedTokens(index: number): number {
    const { prompt } = this;
    this.remembers = true;
    if (!prompt?.prefix) return 0;
    if (!this.isMatched) {
      this.isMatched = true;
      for (let i = 0; i < this.indexes.length; i++)
        this.indexes[i].match(prompt.prefix, prompt.input, this.matches, INDEXED * i);
    }
    return index < this.matches.length ? this.matches[index] : 0;
  }

  /** Tokens of the present prompt whose KV an engine has. */
  heldTokens(engine: Engine): number {
    return this.prompt?.prefix ? engine.heldTokens(this.prompt.prefix, this.prompt.input) : 0;
  }

  /** Forgets what a replica was sent: it has lost its cache. */
  forget(index: number): void {
    this.indexes[Math.floor(index / INDEXED)]?.forget(index % INDEXED);
  }

  snapshot() {
    const { queueSeconds, recentStarts, recentSeconds, turn, draws, remembers, run } = this;
    return {
      ...{ queueSeconds, recentStarts, recentSeconds, turn, draws, remembers },
      indexes: this.indexes.map((index) => index.snapshot()),
      state: run.functions.state?.(),
    };
  }

  /** Goes back to where `snapshot` was taken. */
  restore({ indexes, state, ...rest }: ReturnType<Dispatcher['snapshot']>): void {
    Object.assign(this, rest);
    for (const [i, index] of indexes.entries()) this.index(INDEXED * i).restore(index);
    for (const index of this.indexes.slice(indexes.length)) index.restore([new Map(), new Map()]);
    this.run.functions.restore?.(state);
  }

  private index(replica: number): PrefixIndex {
    const at = Math.floor(replica / INDEXED);
    while (this.indexes.length <= at) this.indexes.push(new PrefixIndex());
    const size = INDEXED * this.indexes.length;
    if (this.matches.length < size) this.matches = new Float64Array(size);
    return this.indexes[at];
  }

  /** The candidate with the highest score, of equal ones in turns; `null` where all are excluded. */
  private best(request: RequestView, { score, ties }: PolicyFunctions): Target | null {
    const { targets } = this.candidates;
    const count = targets.length;
    const turn = ties === 'first' ? 0 : this.turn++ % count;
    if (score === undefined || count === 1) return targets[turn];
    const { view, seconds } = this;
    let best: Target | null = null;
    let bestScore = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < count; i++) {
      const target = targets[turn + i < count ? turn + i : turn + i - count];
      const value = score(request, target.view, seconds, view);
      if (value > bestScore) {
        best = target;
        bestScore = value;
      }
      if (typeof value === 'number' && !Number.isNaN(value)) continue;
      this.run.unexpected('score', 'a number', value);
      throw UNEXPECTED;
    }
    return best;
  }
}

/** Thrown at an answer that has been counted. */
const UNEXPECTED = new Error('unexpected');
