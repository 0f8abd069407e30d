import type { Json } from '@servegym/jobs';
import type { Traffic } from './policy-returns.ts';
import { trafficAnchors } from './traffic-anchors.ts';

/** The job `traffic-anchors`: answers what returns are held against. */
export function runJob(input: Json): Json {
  return trafficAnchors(input as unknown as Traffic) as unknown as Json;
}
