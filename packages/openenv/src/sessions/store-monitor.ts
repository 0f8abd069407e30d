import type { Logger } from '../operations/logger.ts';
import type { StoreCondition } from './session-store.ts';

/** Entries that wait longer than this have met trouble, ms. */
const STALL_MS = 1000;
/** A failure is reported for this long, unless an entry is written before, ms. */
const FAILURE_MS = 30_000;
/** Log entries of failures are at least this far apart, ms. */
const LOG_INTERVAL_MS = 10_000;

/** Watches whether a store makes progress. */
export class StoreMonitor {
  readonly #logger: Logger;
  #failedWrites = 0;
  #refusedWrites = 0;
  #damagedSessions = 0;
  #waiting = 0;
  #progressAt = 0;
  #failure: { readonly reason: string; readonly at: number } | null = null;
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** An entry waits to be written. */
  began(): void {
    if (this.#waiting++ === 0) this.#progressAt = performance.now();
  }

  /** So many entries have been written. */
  written(entries: number): void {
    this.#waiting -= entries;
    this.#progressAt = performance.now();
    if (this.#failure === null) return;
    this.#failure = null;
    this.#loggedAt = Number.NEGATIVE_INFINITY;
    this.#logger.warn({ failedWrites: this.#failedWrites }, 'sessions are written again');
  }

  /** So many entries are lost. */
  failed(entries: number, reason: string): void {
    const now = performance.now();
    this.#waiting -= entries;
    this.#failedWrites += entries;
    this.#progressAt = now;
    this.#failure = { reason, at: now };
    if (now - this.#loggedAt < LOG_INTERVAL_MS) return;
    this.#loggedAt = now;
    this.#logger.error({ failedWrites: this.#failedWrites, reason }, 'sessions cannot be written');
  }

  /** So many entries were refused for a reason that is no failure of the store. */
  refused(entries: number): void {
    this.#waiting -= entries;
    this.#progressAt = performance.now();
  }

  /** An entry was over the quota of its client. */
  overQuota(): void {
    this.#refusedWrites++;
  }

  damaged(session: string, damage: string): void {
    this.#damagedSessions++;
    this.#logger.error({ session, damage }, 'a session is damaged');
  }

  get condition(): Omit<StoreCondition, 'bytes' | 'sharedWith' | 'lastProgram'> {
    return {
      problem: this.#problem(),
      failedWrites: this.#failedWrites,
      refusedWrites: this.#refusedWrites,
      damagedSessions: this.#damagedSessions,
    };
  }

  #problem(): string | null {
    const now = performance.now();
    if (this.#waiting > 0 && now - this.#progressAt > STALL_MS) {
      return `${this.#waiting} entries of sessions have waited ${seconds(now - this.#progressAt)} to be written.`;
    }
    if (this.#failure === null || now - this.#failure.at > FAILURE_MS) return null;
    return `The last entry could not be written ${seconds(now - this.#failure.at)} ago: ${this.#failure.reason}.`;
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
