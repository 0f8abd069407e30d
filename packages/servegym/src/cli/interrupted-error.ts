import { constants } from 'node:os';

/** Signals that end a command which is no server. */
export const INTERRUPTS = ['SIGINT', 'SIGTERM'] as const;
export type Interrupt = (typeof INTERRUPTS)[number];

/** Ctrl-C or SIGTERM before a command was done. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
  /** As shells have it: 130 for Ctrl-C, 143 for SIGTERM. */
  readonly exitCode: number;

  constructor(signal: Interrupt, message = 'interrupted') {
    super(message);
    this.exitCode = 128 + constants.signals[signal];
  }
}

/** Calls `onSignal` at the first Ctrl-C or SIGTERM; a second one ends the process. Returns a function that stops listening. */
export function onInterrupt(onSignal: (signal: Interrupt) => void): () => void {
  const listen = (signal: NodeJS.Signals) => {
    unlisten();
    onSignal(signal as Interrupt);
  };
  const unlisten = () => {
    for (const signal of INTERRUPTS) process.off(signal, listen);
  };
  for (const signal of INTERRUPTS) process.on(signal, listen);
  return unlisten;
}
