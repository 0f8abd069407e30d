/** Outcome of a check. `null` where it was left out; `details` say why. */
export interface Finding {
  readonly passed: boolean | null;
  readonly details: string;
}

/** One thing that has to be true before a release goes out. */
export interface ReleaseCheck {
  /** Stable. */
  readonly id: string;
  readonly description: string;
  /** Whatever it throws, the check has failed with that message. */
  readonly run: () => Promise<Finding>;
}

/** A check with what it found out, and how long it took. */
export interface ReleaseFinding extends Finding {
  readonly id: string;
  readonly description: string;
  readonly seconds: number;
}

export function passed(details: string): Finding {
  return { passed: true, details };
}

export function leftOut(details: string): Finding {
  return { passed: null, details };
}

/** Makes one check after another, and tells each as it is judged. */
export async function runChecks(
  checks: readonly ReleaseCheck[],
  onFinding: (finding: ReleaseFinding) => void,
): Promise<ReleaseFinding[]> {
  const findings: ReleaseFinding[] = [];
  for (const { id, description, run } of checks) {
    const startedAt = performance.now();
    const finding = await run().catch((error: Error): Finding => ({ passed: false, details: error.message }));
    findings.push({ id, description, ...finding, seconds: (performance.now() - startedAt) / 1000 });
    onFinding(findings.at(-1)!);
  }
  return findings;
}
