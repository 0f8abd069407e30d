import type { EngineProfile } from '@servegym/simulator';
import type { Traffic } from './traffic.ts';

/** USD for a million output tokens of one engine that serves `rate` requests/s of the traffic; `null` when it serves none. */
export function usdPerMillionTokens(profile: EngineProfile, { trace }: Traffic, rate: number): number | null {
  if (rate === 0) return null;
  let tokens = 0;
  for (const each of trace.outputTokens) tokens += each;
  const perHour = profile.gpu.count * profile.gpu.usdPerHour;
  return (perHour / (rate * 3600 * (tokens / trace.outputTokens.length))) * 1e6;
}
