import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { MetricsFactory } from './create-server.ts';

/** Gauges of prom-client whose names end as those of counters do. The series beside them tell the same by kind. */
const MISNAMED_GAUGES = ['handles', 'requests', 'resources'].map((kind) => `nodejs_active_${kind}_total`);

/** The numbers of a server for Prometheus, by prom-client: the `metrics` of `createServer`. */
export function prometheusMetrics(): MetricsFactory {
  return (sessions, sockets) => {
    const { counts, capacity } = sessions;
    const registry = new Registry();
    const registers = [registry];
    collectDefaultMetrics({ register: registry });
    for (const name of MISNAMED_GAUGES) registry.removeSingleMetric(name);
    const requests = new Histogram({
      name: 'openenv_http_request_duration_seconds',
      help: 'Time to answer HTTP requests',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
      registers,
    });
    gauge('openenv_sessions', 'Slots that sessions take', () => sessions.size);
    gauge('openenv_sessions_max', 'Slots there are', () => capacity.limits.maxSessions);
    gauge('openenv_episode_size', 'Requests of all episodes in memory', () => capacity.taken.size);
    gauge('openenv_episode_size_max', 'Limit of openenv_episode_size', () => capacity.limits.maxTotalSize);
    counter(
      'openenv_capacity_refusals_total',
      'Times that capacity was refused',
      () => capacity.taken.refusals,
    );
    gauge('openenv_sockets', 'Open WebSockets', () => sockets.size);
    counter('openenv_steps_total', 'Steps played in sessions', () => counts.steps);
    counter('openenv_resets_total', 'Episodes started in sessions', () => counts.resets);
    if (sessions.storeCondition) {
      const store = () => sessions.storeCondition!;
      const isDegraded = () => (store().problem === null ? 0 : 1);
      gauge('openenv_store_degraded', '1 while sessions cannot be written', isDegraded);
      gauge('openenv_store_bytes', 'Size of the file of the sessions', () => store().bytes ?? Number.NaN);
      counter('openenv_store_failed_writes_total', 'Entries lost', () => store().failedWrites);
      counter('openenv_store_refused_writes_total', 'Entries over a quota', () => store().refusedWrites);
      counter('openenv_store_damaged_sessions_total', 'Damaged sessions', () => store().damagedSessions);
    }
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
    return {
      contentType: registry.contentType,
      observeRequest: (method, route, status, seconds) =>
        requests.observe({ method, route, status }, seconds),
      text: () => registry.metrics(),
    };

    function gauge(name: string, help: string, read: () => number): void {
      const collect = (): void => metric.set(read());
      const metric = new Gauge({ name, help, registers, collect });
    }

    function counter(name: string, help: string, read: () => number): void {
      const collect = () => {
        metric.reset();
        metric.inc(read());
      };
      const metric = new Counter({ name, help, registers, collect });
    }
  };
}
