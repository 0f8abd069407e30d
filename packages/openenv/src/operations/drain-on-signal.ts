import type { DrainOptions, ListeningServer } from '../server/listen.ts';

/**
 * Drains a server at the first SIGTERM or SIGINT, after which the process can end by itself. A second signal ends it at
 * once, as if nobody listened. Returns a function that stops listening for signals.
 */
export function drainOnSignal(server: ListeningServer, options: DrainOptions = {}): () => void {
  const stopListening = () => {
    process.off('SIGTERM', drain);
    process.off('SIGINT', drain);
  };
  const drain = () => {
    stopListening();
    void server.drain(options);
  };
  process.on('SIGTERM', drain);
  process.on('SIGINT', drain);
  return stopListening;
}
