import { hash } from 'node:crypto';
import type { EnvironmentDefinition } from '../protocol/definition.ts';

/** The environment that a session is played on. */
export type EnvironmentName = Pick<EnvironmentDefinition, 'id' | 'version'>;

/** Digest of a journal that begins with this reset. */
export function resetDigest(
  sessionId: string,
  { id, version }: EnvironmentName,
  episodeId: string,
  reset: string,
): string {
  return digestOf(JSON.stringify([sessionId, id, version, episodeId, reset]));
}

/** Digest of a journal after one more step. */
export function stepDigest(before: string, action: string): string {
  return digestOf(before + action);
}

function digestOf(text: string): string {
  return hash('sha256', text, 'base64').slice(0, 8);
}
