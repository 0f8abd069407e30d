import { setTimeout as pause } from 'node:timers/promises';
import type { JobContext, Json } from '@servegym/jobs';

/** Says that it has begun, and takes an hour. */
export async function runJob(_: Json, context: JobContext): Promise<Json> {
  context.report(0.5);
  await pause(3_600_000);
  return null;
}
