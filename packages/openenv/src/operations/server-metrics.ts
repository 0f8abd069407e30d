import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { PlayCounts } from './play-counts.ts';

/** What is read of the sessions when the metrics are asked for, so that the hot path only counts. */
interface MeteredSessions {
  readonly size: number;
  readonly maxSessions: number;
  readonly counts: PlayCounts;
}

/** The numbers of a server for Prometheus. */
export class ServerMetrics {
  readonly #registry = new Registry();
  readonly #requests: Histogram<'method' | 'route' | 'status'>;

  constructor(sessions: MeteredSessions, sockets: { readonly size: number }) {
    const { counts } = sessions;
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    this.#requests = new Histogram({
      name: 'openenv_http_request_duration_seconds',
      help: 'Time to answer HTTP requests',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
      registers,
    });
    gauge('openenv_sessions', 'Slots that sessions take', () => sessions.size);
    gauge('openenv_sessions_max', 'Slots there are', () => sessions.maxSessions);
    gauge('openenv_sockets', 'Open WebSockets', () => sockets.size);
    counter('openenv_steps_total', 'Steps played in sessions', () => counts.steps);
    counter('openenv_resets_total', 'Episodes started in sessions', () => counts.resets);
    new Counter({
      name: 'openenv_errors_total',
      help: 'WebSocket messages answered with an error',
      labelNames: ['code'],
      registers,
      collect() {
        this.reset();
        for (const [code, count] of counts.errors) this.inc({ code }, count);
      },
    });

    function gauge(name: string, help: string, read: () => number): void {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    }

    function counter(name: string, help: string, read: () => number): void {
      new Counter({
        name,
        help,
        registers,
        collect() {
          this.reset();
          this.inc(read());
        },
      });
    }
  }

  observeRequest(method: string, route: string, status: number, seconds: number): void {
    this.#requests.observe({ method, route, status }, seconds);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The text of `GET /metrics`. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
