import { type Handover, TransferLink } from '../cluster/transfer-link.ts';
import type { Engine } from '../engine/engine.ts';
import type { RequestProgress } from '../engine/engine-log.ts';
import type { RequestView } from '../policy/views.ts';
import type { EngineProfile } from '../profiles/engine-profile.ts';
import type { Router } from './router.ts';

/** Engines that prefill, each with a link of its own, and engines that decode what comes over the links. */
export class Handovers {
  private readonly prefilling: readonly Engine[];
  private readonly decoding: readonly Engine[];
  private readonly links: readonly TransferLink[];
  readonly router: Router;
  private readonly viewOf: (request: RequestProgress) => RequestView;
  /** On the links, the first to be there first. */
  private sent: Handover[] = [];

  constructor(
    prefilling: readonly Engine[],
    decoding: readonly Engine[],
    router: Router,
    viewOf: (request: RequestProgress) => RequestView,
    profile: EngineProfile,
    /** Profile of the engines that decode. */
    decodeProfile: EngineProfile = profile,
  ) {
    this.prefilling = prefilling;
    this.decoding = decoding;
    const { gigabytesPerSecond, setupMs } = profile.transfer;
    const other = decodeProfile.transfer;
    const transfer = {
      gigabytesPerSecond: Math.min(gigabytesPerSecond, other.gigabytesPerSecond),
      setupMs: Math.max(setupMs, other.setupMs),
    };
    // A group that holds each token several times, as tensor parallelism does with latent attention, sends one of them.
    const kvBytesPerToken = Math.min(profile.model.kvBytesPerToken, decodeProfile.model.kvBytesPerToken);
    const model = { ...profile.model, kvBytesPerToken };
    this.links = prefilling.map(() => new TransferLink({ ...profile, model, transfer }));
    this.router = router;
    this.viewOf = viewOf;
  }

  /** Tick at which the next KV is there; `Infinity` while none is on its way. */
  get nextReady(): number {
    return this.sent.length === 0 ? Number.POSITIVE_INFINITY : this.sent[0].ready;
  }

  /** Runs the engines that decode to `tick`, behind those that prefill. */
  runUntil(tick: number): void {
    for (const [i, engine] of this.prefilling.entries()) this.sent.push(...this.links[i].sendFrom(engine));
    this.sent.sort((a, b) => a.ready - b.ready || a.request.id - b.request.id);
    let there = 0;
    for (; there < this.sent.length && this.sent[there].ready <= tick; there++) {
      const { request, ready } = this.sent[there];
      const view = this.router.looks ? this.viewOf(request) : null;
      this.router.choose(request, ready, view).submitTransferred(request, ready);
    }
    this.sent.splice(0, there);
    for (const engine of this.decoding) engine.runUntil(tick);
  }

  /** Forgets a request whose KV is on its way. @returns whether there was one of that id */
  abort(id: number): boolean {
    const at = this.sent.findIndex(({ request }) => request.id === id);
    if (at >= 0) this.sent.splice(at, 1);
    return at >= 0;
  }

  /** Whether a request that arrives at `tick` is prefilled apart; if not, an engine that decodes serves all of it. */
  disaggregates(view: RequestView, tick: number): boolean {
    if (!this.router.asksWhere) return true;
    const at = this.router.scrapeBefore(tick);
    for (const engine of this.prefilling) engine.runUntil(at);
    this.runUntil(at);
    return this.router.disaggregates(view, tick);
  }

  /** Moves the origin of the clock, as `Engine.shiftClock`. */
  shiftClock(ticks: number): void {
    this.router.shiftClock(ticks);
    for (const link of this.links) link.idleFrom -= ticks;
    this.sent = this.sent.map(({ request, ready }) => ({
      ready: ready - ticks,
      request: {
        ...request,
        arrival: request.arrival - ticks,
        visible: request.visible - ticks,
        scheduled: request.scheduled - ticks,
        firstToken: request.firstToken - ticks,
        lastToken: request.lastToken - ticks,
      },
    }));
  }
}
