import { signal } from '@preact/signals';
import type { Exchange } from '../api/wire.ts';

const MOST_EXCHANGES = 30;

/** The latest requests of this page, the newest first. */
export const exchanges = signal<readonly Exchange[]>([]);

export function noteExchange(exchange: Exchange): void {
  exchanges.value = [exchange, ...exchanges.peek().slice(0, MOST_EXCHANGES - 1)];
}
