import { PrefixIndex } from '../policy/prefix-index.ts';
import type { FleetRequest, FleetSettings } from './fleet-options.ts';
import type { Replica } from './replica.ts';

/** Time over which the rate of first tokens is averaged, s: a choice. */
const RATE_MEMORY_S = 30;
/** First class that admission refuses as soon as the queue is too long, and the one before it, refused at twice that. */
const BEST_EFFORT = 2;
const BATCH = 1;

/**
 * Chooses a replica for each request by a weighted sum of scores in [0, 1], as the gateways of Kubernetes' inference
 * extension do (queue, KV-cache utilisation and prefix-cache scorers), and refuses classes while the queue is long. It
 * sees the replicas' metrics as they were at the last look, and counts what it has sent since.
 */
export class Gateway {
  /** Requests that wait for a replica to be ready, in order of arrival. */
  held: FleetRequest[] = [];
  /** Seconds of queue as of the last look; `Infinity` when requests wait and none has been served. */
  queueSeconds = 0;
  /** First tokens and seconds, each weighted by exp(-age / `RATE_MEMORY_S`). */
  private recentStarts = 0;
  private recentSeconds = 0;
  private turn = 0;
  private readonly index = new PrefixIndex();
  private readonly matched = new Float64Array(32);
  private front: Replica[] = [];
  private decoders: Replica[] = [];

  /** Takes note of the replicas' metrics, and of which may be sent requests. */
  look(replicas: readonly Replica[]): void {
    let waiting = this.held.length;
    for (const replica of replicas) {
      replica.look();
      waiting += replica.engine.waitingCount + replica.engine.futureCount;
    }
    const routable = replicas.filter((replica) => replica.isRoutable);
    const prefillers = routable.filter(({ engine }) => engine.role === 'prefill');
    this.decoders = routable.filter(({ engine }) => engine.role === 'mixed');
    this.front = prefillers.length > 0 ? prefillers : this.decoders;
    this.queueSeconds = waiting === 0 ? 0 : (waiting * this.recentSeconds) / this.recentStarts;
  }

  /** Takes note of the first tokens of an interval. */
  measure(starts: number, seconds: number): void {
    const kept = Math.exp(-seconds / RATE_MEMORY_S);
    this.recentStarts = this.recentStarts * kept + starts;
    this.recentSeconds = this.recentSeconds * kept + seconds;
  }

  /** Sends what is held, when a replica is ready. What was accepted is not refused any more. */
  flush(now: number): void {
    if (this.front.length === 0 || this.held.length === 0) return;
    const { held } = this;
    this.held = [];
    for (const request of held) this.send({ ...request, arrival: now }, this.best(request, NO_WEIGHTS));
  }

  /** Sends a request to a replica, or holds it while none is ready. Answers false when it is refused. */
  route(request: FleetRequest, settings: FleetSettings): boolean {
    const { queueSeconds } = this;
    const { admissionSeconds, routing } = settings;
    if (request.priority >= BEST_EFFORT && queueSeconds > admissionSeconds) return false;
    if (request.priority === BATCH && queueSeconds > 2 * admissionSeconds) return false;
    if (this.front.length === 0) this.held.push(request);
    else this.send(request, this.best(request, routing));
    return true;
  }

  /** The replica with the fewest requests in flight of those that decode; `null` when there is none. */
  leastLoadedDecoder(): Replica | null {
    let least: Replica | null = null;
    for (const replica of this.decoders) {
      if (least === null || replica.inFlight < least.inFlight) least = replica;
    }
    return least;
  }

  /** Forgets what a replica was sent: it has lost its cache. */
  forget(slot: number): void {
    this.index.forget(slot);
  }

  snapshot(): GatewaySnapshot {
    const { held, queueSeconds, recentStarts, recentSeconds, turn, index } = this;
    return {
      ...{ held: held.slice(), queueSeconds, recentStarts, recentSeconds, turn },
      index: index.snapshot(),
    };
  }

  /** Goes back to where `snapshot` was taken, between two intervals. */
  restore(snapshot: GatewaySnapshot): void {
    this.held = snapshot.held.slice();
    this.queueSeconds = snapshot.queueSeconds;
    this.recentStarts = snapshot.recentStarts;
    this.recentSeconds = snapshot.recentSeconds;
    this.turn = snapshot.turn;
    this.index.restore(snapshot.index);
  }

  private send(request: FleetRequest, replica: Replica): void {
    replica.engine.submit(request);
    replica.inFlight++;
    replica.routed++;
    if (request.prefix !== null) this.index.record(request.prefix, replica.slot);
  }

  private best(request: FleetRequest, weights: FleetSettings['routing']): Replica {
    const { front, matched } = this;
    const turn = this.turn++ % front.length;
    if (front.length === 1) return front[0];
    const { queue, cache, prefix } = weights;
    if (prefix > 0 && request.prefix !== null) this.index.match(request.prefix, request.input, matched);
    else matched.fill(0);
    let fewest = Number.POSITIVE_INFINITY;
    let most = 0;
    for (const { inFlight } of front) {
      if (inFlight < fewest) fewest = inFlight;
      if (inFlight > most) most = inFlight;
    }
    const span = Math.max(1, most - fewest);
    let best = front[turn];
    let bestScore = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < front.length; i++) {
      const replica = front[(turn + i) % front.length];
      const score =
        queue * ((most - replica.inFlight) / span) +
        cache * (1 - replica.kvUse) +
        (prefix * matched[replica.slot]) / request.input;
      if (score > bestScore) {
        best = replica;
        bestScore = score;
      }
    }
    return best;
  }
}

const NO_WEIGHTS = { queue: 1, cache: 0, prefix: 0 };

/** The state of a gateway, made by `snapshot` and taken by `restore`. */
export interface GatewaySnapshot {
  readonly held: readonly FleetRequest[];
  readonly queueSeconds: number;
  readonly recentStarts: number;
  readonly recentSeconds: number;
  readonly turn: number;
  readonly index: ReturnType<PrefixIndex['snapshot']>;
}
