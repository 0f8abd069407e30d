import { playRegimes, type RegimeTrial } from '@servegym/agents';
import type { Json } from '@servegym/agents/jobs';

/** Plays a table of regimes; answers its mean return. */
export function runJob(input: Json): Json {
  return playRegimes(input as unknown as RegimeTrial);
}
