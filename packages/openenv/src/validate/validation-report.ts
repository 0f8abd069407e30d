/** One thing that a server was checked for. The first six, and the shape, are those of `openenv validate --json`. */
export interface Criterion {
  readonly id: string;
  readonly description: string;
  readonly passed: boolean;
  /** Whether the server fails without it. */
  readonly required: boolean;
  /** What was wrong. */
  readonly details?: string;
}

export interface ValidationReport {
  readonly target: string;
  readonly validation_type: 'running_environment';
  readonly standard_version: string;
  readonly standard_profile: string;
  readonly mode: 'simulation' | 'production' | 'unknown';
  readonly passed: boolean;
  readonly summary: {
    readonly passed_count: number;
    readonly total_count: number;
    readonly failed_criteria: readonly string[];
    readonly required_passed_count: number;
    readonly required_total_count: number;
  };
  readonly criteria: readonly Criterion[];
}

/** Collects criteria. */
export class Checklist {
  readonly #criteria: Criterion[] = [];

  /** Notes a criterion: passed when the check returns, failed with the message of what it throws. */
  async check<T>(
    id: string,
    description: string,
    check: () => T | Promise<T>,
    required = true,
  ): Promise<T | undefined> {
    try {
      const value = await check();
      this.#criteria.push({ id, description, passed: true, required });
      return value;
    } catch (error) {
      this.#criteria.push({ id, description, passed: false, required, details: (error as Error).message });
      return undefined;
    }
  }

  report(target: string, version: string, mode: ValidationReport['mode']): ValidationReport {
    const criteria = this.#criteria;
    const required = criteria.filter((criterion) => criterion.required);
    return {
      target,
      validation_type: 'running_environment',
      standard_version: version,
      standard_profile: version.startsWith('1.') ? 'openenv-http/1.x' : 'openenv-http/unknown',
      mode,
      passed: required.every((criterion) => criterion.passed),
      summary: {
        passed_count: criteria.filter((criterion) => criterion.passed).length,
        total_count: criteria.length,
        failed_criteria: criteria.filter((criterion) => !criterion.passed).map((criterion) => criterion.id),
        required_passed_count: required.filter((criterion) => criterion.passed).length,
        required_total_count: required.length,
      },
      criteria,
    };
  }
}

/** Fails a check. */
export function expect(condition: boolean, complaint: string): asserts condition {
  if (!condition) throw new Error(complaint);
}
