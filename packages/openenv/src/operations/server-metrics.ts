import type { StoreCondition } from '../sessions/session-store.ts';
import type { PlayCounts } from './play-counts.ts';

/** Figures of the sessions, read when the metrics are asked for, so that the hot path only counts. */
export interface MeteredSessions {
  readonly size: number;
  readonly maxSessions: number;
  readonly counts: PlayCounts;
  readonly storeCondition: StoreCondition | undefined;
}

/** The numbers of a server, as `GET /metrics` answers them. */
export interface ServerMetrics {
  readonly contentType: string;
  observeRequest(method: string, route: string, status: number, seconds: number): void;
  text(): Promise<string>;
}

/** Makes the metrics of one server. `prometheusMetrics()` of `@servegym/openenv/metrics` is one. */
export type MetricsFactory = (sessions: MeteredSessions, sockets: { readonly size: number }) => ServerMetrics;
