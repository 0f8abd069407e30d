import type { Criterion } from '@servegym/openenv';
import type { ValidationReport } from '@servegym/openenv/validate';

/** A line for a criterion, and below it what was wrong. */
export function criterionLines({
  id,
  description,
  required,
  passed,
  details,
  expected,
  actual,
}: Criterion): string {
  const mark = passed === null ? '-' : passed ? '✓' : required ? '✗' : '!';
  const lines = [`${mark} ${id.padEnd(34)}${description}`];
  if (!passed && details) lines.push(`    ${details}`);
  if (passed === false && expected !== undefined) {
    lines.push(`    expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`);
  }
  return lines.join('\n');
}

/** The result in a few words. */
export function validationSummary({ passed, mode, standard_profile, summary }: ValidationReport): string {
  const advised = summary.total_count - summary.required_total_count;
  const advisedPassed = summary.passed_count - summary.required_passed_count;
  return [
    `${passed ? 'valid' : 'not valid'} (${standard_profile}, ${mode} mode):`,
    `${summary.required_passed_count} of ${summary.required_total_count} required criteria (✗ where not),`,
    `${advisedPassed} of ${advised} advised ones (! where not);`,
    `${summary.not_applicable.length} do not apply (-)`,
  ].join(' ');
}
