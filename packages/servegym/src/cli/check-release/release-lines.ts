import type { ReleaseFinding } from './release-check.ts';

/** A line for a check, with what it found out below it. */
export function releaseLine({ passed, id, description, details, seconds }: ReleaseFinding): string {
  const mark = passed === null ? '-' : passed ? '✓' : '✗';
  return `${mark} ${id.padEnd(24)}${description}\n  ${''.padEnd(24)}${details} (${seconds.toFixed(1)} s)`;
}

/** The result in a few words. */
export function releaseSummary(findings: readonly ReleaseFinding[]): string {
  const count = (wanted: boolean | null) => findings.filter(({ passed }) => passed === wanted).length;
  const verdict = count(false) === 0 ? 'ready' : 'not ready';
  return `${verdict}: ${count(true)} passed, ${count(false)} failed, ${count(null)} left out`;
}
