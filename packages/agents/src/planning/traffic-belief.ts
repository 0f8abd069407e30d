import {
  type EpisodeRequests,
  episodeRequests,
  type Phase,
  phaseRequests,
  REQUEST_CLASSES,
  type RequestList,
  type ServeTask,
} from '@servegym/environments';
import { portableMath, RandomStream, TICKS_PER_S } from '@servegym/simulator';

/** Logarithm of the likelihood of a request of a class that a phase does not have. */
const FOREIGN_CLASS = -20;
/** Windows that traffic without phases is judged by. */
const RECENT = 6;

/**
 * Estimate by somebody who knows the kinds of traffic and the requests that have arrived, but not those to come:
 * which phase it is, since when, at which rate. Reads nothing of the windows that have not been observed.
 */
export class TrafficBelief {
  readonly #task: ServeTask;
  readonly #requests: EpisodeRequests;
  /** The likeliest phase of each window observed. */
  readonly #phases: number[] = [];

  /** @param requests the traffic of the episode, of which only observed windows are read */
  constructor(task: ServeTask, requests: EpisodeRequests) {
    this.#task = task;
    this.#requests = requests;
  }

  /** Looks at the arrivals of the window after those observed so far. */
  observe(): void {
    const window = this.#phases.length;
    let best = 0;
    let most = Number.NEGATIVE_INFINITY;
    for (const [phase, description] of this.#task.phases.entries()) {
      const likelihood = this.#logLikelihood(description, window);
      if (likelihood <= most) continue;
      most = likelihood;
      best = phase;
    }
    this.#phases.push(best);
  }

  /**
   * Requests whose observed windows are those of the episode, and whose next `windows` windows are drawn: the phase
   * goes on for as long as such phases do, others follow it. The rest of the episode is empty.
   */
  sampleFuture(windows: number, seed: number): EpisodeRequests {
    const task = this.#task;
    const seen = this.#phases.length;
    const count = Math.min(windows, task.windows - seen);
    const draws = new RandomStream(seed, 'futures');
    const phases = new Uint8Array(count);
    const rates = new Float64Array(count);
    const tenantGiB = new Float64Array(count);
    let { phase: current, left, rate, tenant } = this.#present(draws);
    for (let i = 0; i < count; i++, left--) {
      if (left <= 0) {
        const next = begun(draws, task.phases, nextPhase(draws, task.phases, current));
        ({ phase: current, left, rate, tenant } = next);
      }
      const { burstiness } = task.phases[current];
      phases[i] = current;
      // The mean of a log-normal factor is 1 when mu is -sigma^2 / 2.
      rates[i] = rate * draws.lognormal(-(burstiness * burstiness) / 2, burstiness);
      tenantGiB[i] = tenant;
    }
    const schedule = { phases, rates, tenantGiB };
    const ahead = { ...task, windows: count };
    const requests =
      task.source === undefined ? phaseRequests(ahead, seed, schedule) : this.#requestsAgain(count, draws);
    return joined(this.#requests, seen, episodeRequests(ahead, requests, schedule), task);
  }

  /** Requests like those of the last windows: what can be said of traffic that no phases describe. */
  #requestsAgain(windows: number, draws: RandomStream): RequestList {
    const { windowStarts, inputTokens, outputTokens, classes } = this.#requests;
    const { windowSeconds } = this.#task;
    const seen = this.#phases.length;
    const from = windowStarts[Math.max(0, seen - RECENT)];
    const recent = windowStarts[seen] - from;
    const drawn: number[] = [];
    const arrivalSeconds: number[] = [];
    if (recent > 0) {
      const gap = (Math.min(seen, RECENT) * windowSeconds) / recent;
      const end = windows * windowSeconds;
      for (let at = draws.exponential(gap); at < end; at += draws.exponential(gap)) {
        arrivalSeconds.push(at);
        drawn.push(from + draws.integer(0, recent - 1));
      }
    }
    return {
      arrivalSeconds,
      inputTokens: drawn.map((id) => inputTokens[id]),
      outputTokens: drawn.map((id) => outputTokens[id]),
      classes: drawn.map((id) => classes[id]),
    };
  }

  /** The phase that is on, and for how many more windows. */
  #present(draws: RandomStream): ReturnType<typeof begun> {
    const { phases, windowSeconds } = this.#task;
    const { windowStarts, tenantGiB } = this.#requests;
    const seen = this.#phases.length;
    if (seen === 0) return begun(draws, phases, 0);
    const phase = this.#phases[seen - 1];
    let start = seen - 1;
    while (start > 0 && this.#phases[start - 1] === phase) start--;
    const age = seen - start;
    const [least, most] = phases[phase].windows;
    return {
      phase,
      left: draws.integer(Math.max(least, age + 1), Math.max(most, age + 1)) - age,
      rate: (windowStarts[seen] - windowStarts[start]) / (age * windowSeconds),
      tenant: tenantGiB[seen - 1],
    };
  }

  /** Of the number of arrivals and of their classes and prompts. */
  #logLikelihood({ arrivalsPerSecond, burstiness, traffic }: Phase, window: number): number {
    const { windowStarts, classes, inputTokens } = this.#requests;
    const { windowSeconds } = this.#task;
    const from = windowStarts[window];
    const to = windowStarts[window + 1];
    const count = to - from;
    const [low, high] = arrivalsPerSecond;
    const expected = windowSeconds * Math.min(high, Math.max(low, count / windowSeconds));
    const variance = expected + (burstiness * expected) ** 2;
    let sum = -((count - expected) ** 2) / (2 * variance) - portableMath.log(variance) / 2;
    for (let id = from; id < to; id++) {
      const kind = traffic[REQUEST_CLASSES[classes[id]]];
      sum +=
        kind === undefined
          ? FOREIGN_CLASS
          : portableMath.log(kind.share) + logDensity(inputTokens[id], kind.prompt);
    }
    return sum;
  }
}

/** Of a log-normal, but for a term that is the same for all. */
function logDensity(
  value: number,
  { median, sigma }: { readonly median: number; readonly sigma: number },
): number {
  const z = portableMath.log(value / median) / sigma;
  return -(z * z) / 2 - portableMath.log(sigma);
}

function nextPhase(draws: RandomStream, phases: readonly Phase[], current: number): number {
  if (phases.length === 1) return current;
  return draws.choose(phases.map(({ weight }, i) => (i === current ? 0 : weight)));
}

/** A phase that begins, and the windows that are left of it. */
function begun(draws: RandomStream, phases: readonly Phase[], phase: number) {
  const { windows, arrivalsPerSecond, tenantGiB } = phases[phase];
  const left = draws.integer(windows[0], windows[1]);
  return { phase, left, rate: within(draws, arrivalsPerSecond), tenant: within(draws, tenantGiB) };
}

function within(draws: RandomStream, [low, high]: readonly [number, number]): number {
  return low + draws.uniform() * (high - low);
}

/** The first `seen` windows of `past` and then `ahead`. */
function joined(
  past: EpisodeRequests,
  seen: number,
  ahead: EpisodeRequests,
  task: ServeTask,
): EpisodeRequests {
  const before = past.windowStarts[seen];
  const origin = seen * task.windowSeconds;
  const total = before + ahead.arrivalTicks.length;
  const windowStarts = new Int32Array(task.windows + 1).fill(total);
  windowStarts.set(past.windowStarts.subarray(0, seen));
  windowStarts.set(
    ahead.windowStarts.map((id) => before + id),
    seen,
  );
  const ticks = origin * TICKS_PER_S;
  const arrivalsAhead = ahead.arrivalTicks.map((tick) => tick + ticks);
  return {
    arrivalTicks: concatenated(past.arrivalTicks, before, arrivalsAhead, total),
    inputTokens: concatenated(past.inputTokens, before, ahead.inputTokens, total),
    outputTokens: concatenated(past.outputTokens, before, ahead.outputTokens, total),
    classes: concatenated(past.classes, before, ahead.classes, total),
    windowStarts,
    phases: concatenated(past.phases, seen, ahead.phases, task.windows),
    tenantGiB: concatenated(past.tenantGiB, seen, ahead.tenantGiB, task.windows),
    // Nothing is known of what prompts to come will share.
    ...(past.prefixes && {
      prefixes: { ...past.prefixes, offsets: offsetsUpTo(past.prefixes.offsets, before, total) },
    }),
  };
}

/** The chunks of the first `before` requests, and none of those up to `total`. */
function offsetsUpTo(offsets: Int32Array, before: number, total: number): Int32Array {
  const all = new Int32Array(total + 1).fill(offsets[before]);
  all.set(offsets.subarray(0, before));
  return all;
}

/** The first `before` values of `past`, those `ahead`, and zeros up to a length. */
function concatenated<Values extends Float64Array | Int32Array | Uint8Array>(
  past: Values,
  before: number,
  ahead: Values,
  length: number,
): Values {
  const all = new (past.constructor as new (length: number) => Values)(length);
  all.set(past.subarray(0, before));
  all.set(ahead, before);
  return all;
}
