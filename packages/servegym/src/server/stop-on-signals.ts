import type { EventEmitter } from 'node:events';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Signals this close together are one: a terminal and npm both hand Ctrl-C to the server. */
const ONE_SIGNAL_MS = 500;

/** A server that can be stopped. */
export interface StoppableServer {
  /** Sessions that a socket holds now. */
  readonly heldSessions: number;
  drain(options: { readonly graceMs: number }): Promise<void>;
  close(): Promise<void>;
}

export interface StopOptions {
  /** Time for which the sessions that sockets hold may go on after the first signal, ms. */
  readonly graceMs: number;
  /** Tells the person what is waited for. */
  readonly say: (message: string) => void;
  /** Default: those of this process. */
  readonly signals?: Pick<EventEmitter, 'on' | 'off'>;
}

/**
 * Resolves when the server has stopped: SIGINT, SIGTERM or SIGHUP drains it, a second signal closes it at once. From
 * the third on, signals do what they do to any process.
 */
export function stopOnSignals(server: StoppableServer, options: StopOptions): Promise<void> {
  const { graceMs, say, signals = process } = options;
  return new Promise((resolve, reject) => {
    let isFirst = true;
    let isEcho = false;

    const onSignal = () => {
      if (isEcho) return;
      isEcho = true;
      const isLast = !isFirst;
      setTimeout(() => {
        isEcho = false;
        if (isLast) for (const signal of SIGNALS) signals.off(signal, onSignal);
      }, ONE_SIGNAL_MS).unref();
      const stopped = isFirst ? drain() : server.close();
      isFirst = false;
      stopped.then(resolve, reject);
    };
    for (const signal of SIGNALS) signals.on(signal, onSignal);
  });

  function drain(): Promise<void> {
    const { heldSessions: held } = server;
    if (held > 0 && graceMs > 0) {
      const sessions = held === 1 ? '1 session' : `${held} sessions`;
      say(
        `Stopping: waiting up to ${graceMs / 1000} s for ${sessions} to end. A second signal stops at once.`,
      );
    }
    return server.drain({ graceMs });
  }
}
