import { createHash } from 'node:crypto';
import type { Job, Json } from './job.ts';

/**
 * The name of a job and of its result: the same for the same kind, input, shared bytes and version of the code,
 * whoever submits it.
 */
export function jobId(job: Job, version: string): string {
  const identity: Json = [version, job.kind, job.input, job.shared ?? []];
  // A queue takes no name that could be a number.
  return `j${createHash('sha256').update(canonicalJson(identity)).digest('hex').slice(0, 40)}`;
}

/** The name of shared bytes. */
export function bytesName(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 40);
}

/** JSON in which the order of keys does not matter. */
function canonicalJson(value: Json): string {
  return JSON.stringify(value, (_, inner) => {
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
