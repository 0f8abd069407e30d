import type { EventEmitter } from 'node:events';
import { isLoopback, type OpenEnvServer } from '@servegym/openenv';
import { counted } from '@servegym/simulator';
import { InputError } from '../cli/failure.ts';

/** Advice on an address that cannot be listened on; other errors come back as they are. */
export function listenError(error: NodeJS.ErrnoException, port: number, host: string): Error {
  const other = port === 65535 ? 7860 : port + 1;
  const absent = `\`${host}\` is no address of this machine. Choose one with --host or HOST; 0.0.0.0 is all of them.`;
  const advice: Readonly<Record<string, string>> = {
    EADDRINUSE: `Port ${port} is taken by another program. Stop it, or choose another port with --port or PORT, for instance --port ${other}.`,
    EACCES: `Port ${port} needs privileges. Choose one above 1023 with --port or PORT.`,
    ...{ EADDRNOTAVAIL: absent, ENOTFOUND: absent, EAI_AGAIN: absent },
  };
  const message = advice[error.code ?? ''];
  return message === undefined ? error : new InputError(message, { code: 'ADDRESS_UNUSABLE' });
}

/** Opens the port of the first of some servers, of which the others are part. Where that fails, all are closed. */
export async function listen(servers: readonly OpenEnvServer[], address: { port: number; host: string }) {
  try {
    const listening = await servers[0].listen(address);
    const held = ({ sessions }: OpenEnvServer) => [...sessions].filter((session) => session.isAttached);
    /** Sessions that a socket holds now. */
    const heldSessions = () => servers.flatMap(held).length;
    return { ...listening, heldSessions };
  } catch (error) {
    for (const server of servers) await server.close();
    throw listenError(error as NodeJS.ErrnoException, address.port, address.host);
  }
}

/** Says that other machines reach a server, and, where `open` says that it lets everybody in, how to change that. */
export function tellOthers(
  { address, port }: { readonly address: string; readonly port: number },
  open: string | false = false,
  variable = '',
): void {
  if (isLoopback(address)) return;
  console.log(`It listens on ${address}, port ${port}: other machines can reach it`);
  if (open)
    console.error(
      `warning: ${open}: anyone who reaches this machine can use it. Set ${variable}, or listen on 127.0.0.1`,
    );
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Signals this close together are one: a terminal and npm both hand Ctrl-C to the server. */
const ONE_SIGNAL_MS = 500;

interface StoppableServer {
  /** Sessions that a socket holds now. */
  heldSessions(): number;
  drain(options: { readonly graceMs: number }): Promise<void>;
  close(): Promise<void>;
}

interface StopOptions {
  /** Time for which the sessions that sockets hold may go on after the first signal, ms. */
  readonly graceMs: number;
  /** Tells the person what is waited for. */
  readonly say: (message: string) => void;
  /** What is waited for, in words. Default: so many sessions to end. */
  readonly held?: (count: number) => string;
  /** Default: those of this process. */
  readonly signals?: Pick<EventEmitter, 'on' | 'off'>;
}

/**
 * Resolves when the server has stopped: SIGINT, SIGTERM or SIGHUP drains it, a second signal closes it at once. From
 * the third on, signals do what they do to any process.
 */
export function stopOnSignals(server: StoppableServer, options: StopOptions): Promise<void> {
  const { graceMs, say, signals = process } = options;
  const { held: words = (count) => `${counted(count, 'session')} to end` } = options;
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
    const held = server.heldSessions();
    if (held > 0 && graceMs > 0) {
      say(`Stopping: waiting up to ${graceMs / 1000} s for ${words(held)}. A second signal stops at once.`);
    }
    return server.drain({ graceMs });
  }
}
