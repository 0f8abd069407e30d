import { hash } from 'node:crypto';
import type { EnvironmentName } from './session-store.ts';

/**
 * A journal is a chain: the digest of each entry covers the entry and the digest before it, so that an entry that was
 * changed, removed or put elsewhere is found. It is no protection against people who may write to the store.
 */

/** Digest of a journal that begins with this reset. */
export function resetDigest(
  sessionId: string,
  environment: EnvironmentName,
  episodeId: string,
  reset: string,
): string {
  return digest(JSON.stringify([sessionId, environment.id, environment.version, episodeId, reset]));
}

/** Digest of a journal after one more step. */
export function stepDigest(before: string, action: string): string {
  return digest(before + action);
}

function digest(text: string): string {
  return hash('sha256', text, 'base64').slice(0, 8);
}
