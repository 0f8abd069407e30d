import { ServerClient } from '@servegym/operators/twin';
import { type Interrupt, onInterrupt } from '../interrupted-error.ts';

/** A running server to measure, until it is closed or Ctrl-C stops the load. */
interface OpenServer {
  readonly client: ServerClient;
  /** Aborted at the first Ctrl-C or SIGTERM. */
  readonly stopped: AbortSignal;
  /** The signal that stopped the load. */
  interrupt(): Interrupt | undefined;
  close(): void;
}

/** Opens a client of the server that the options name, and listens for Ctrl-C. */
export function openServer(
  options: { readonly server: string; readonly apiKey?: string; readonly servedModelName?: string },
  timeoutS: number,
): OpenServer {
  const { server: url, apiKey, servedModelName: model } = options;
  const client = new ServerClient({ url, apiKey, model, timeoutS });
  const stop = new AbortController();
  let interrupt: Interrupt | undefined;
  const unlisten = onInterrupt((signal) => {
    interrupt = signal;
    stop.abort();
  });
  return {
    client,
    stopped: stop.signal,
    interrupt: () => interrupt,
    close() {
      unlisten();
      client.close();
    },
  };
}
