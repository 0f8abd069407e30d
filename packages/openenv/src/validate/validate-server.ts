import { at, type Checks, type Criterion, type CriterionId, criterionOf, notApplicable } from './check.ts';
import { HTTP_CRITERIA, HTTP_SESSION_CHECKS, MCP_CHECKS } from './http-checks.ts';
import RFC008 from './rfc008.json' with { type: 'json' };
import { CAPACITY_CHECKS, ERROR_CHECKS, SESSION_CHECK, SESSION_CHECKS } from './session-checks.ts';
import { Subject, type ValidateOptions } from './subject.ts';

/** A report in the form of `openenv validate --url --json`, with more criteria. */
export type ValidationReport = Readonly<Awaited<ReturnType<typeof report>>>;

const LAST_CHECK: Checks = {
  healthy_afterwards: async (subject) =>
    (await isHealthy(subject)) ? null : 'GET /health does not say that it is',
};

/**
 * Checks any running OpenEnv server, ours or another: the six criteria of `openenv validate --url`, and then that its
 * sessions can be played, are deterministic and isolated, that observations and states are as the schemas say, that
 * mistakes are answered as clients need it, and that sessions are given back. Tells each criterion as it is judged.
 * Defects of the server are in the report and never thrown.
 * @throws TypeError when `url` is no URL.
 */
export async function validateServer(
  url: string | URL,
  options: ValidateOptions = {},
  onCriterion: (criterion: Criterion) => void = () => {},
): Promise<ValidationReport> {
  const subject = new Subject(url, options);
  const criteria: Criterion[] = [];
  const judge = async (checks: Checks, reason: string | null = null) => {
    for (const [id, run] of Object.entries(checks)) {
      const verdict = () => (reason === null ? run(subject) : notApplicable(reason));
      const criterion = await criterionOf(id as CriterionId, verdict);
      criteria.push(criterion);
      onCriterion(criterion);
    }
  };
  const met = (id: string) => criteria.some((criterion) => criterion.id === id && criterion.passed === true);

  await judge(HTTP_CRITERIA);
  const unreachable = met('health_endpoint') ? null : 'not judged: GET /health has failed';
  await judge(SESSION_CHECK, unreachable);
  const unplayable = met('websocket_session') ? null : 'not judged: websocket_session has failed';
  await judge({ ...SESSION_CHECKS, ...ERROR_CHECKS, ...CAPACITY_CHECKS }, unplayable);
  // A server that hangs by now would take the time limit of every check.
  const gone = unreachable ?? ((await isHealthy(subject)) ? null : 'not judged: the server answers no more');
  const mode = await subject.mode().catch(() => 'unknown');
  const production = 'the server is in production mode and has no /reset, /step and /state';
  await judge(HTTP_SESSION_CHECKS, gone ?? (mode === 'production' ? production : null));
  await judge(MCP_CHECKS, gone);
  await judge(LAST_CHECK, unreachable);
  return report(subject, criteria);
}

async function isHealthy(subject: Subject): Promise<boolean> {
  const answer = await subject.fetch('health', { method: 'GET' }).catch(() => null);
  return answer?.status === 200 && at(answer.body, 'status') === 'healthy';
}

async function report(subject: Subject, criteria: readonly Criterion[]) {
  const openApi = await subject.get('openapi.json').catch(() => null);
  const version = at(openApi?.body, 'info', 'version');
  const applicable = criteria.filter(({ passed }) => passed !== null);
  const required = applicable.filter((criterion) => criterion.required);
  return {
    target: subject.options.base.href.replace(/\/$/, ''),
    validation_type: 'running_environment' as const,
    /** `info.version` of the OpenAPI document. */
    standard_version: typeof version === 'string' ? version : 'unknown',
    standard_profile: `openenv-http/${String(version).startsWith('1.') ? '1.x' : 'unknown'}`,
    mode: openApi?.status === 200 ? await subject.mode() : ('unknown' as const),
    /** True when every required criterion that applies is met. */
    passed: required.every(({ passed }) => passed),
    summary: {
      passed_count: applicable.filter(({ passed }) => passed).length,
      /** Without those that do not apply. */
      total_count: applicable.length,
      failed_criteria: applicable.filter(({ passed }) => !passed).map(({ id }) => id),
      required_passed_count: required.filter(({ passed }) => passed).length,
      required_total_count: required.length,
      not_applicable: criteria.filter(({ passed }) => passed === null).map(({ id }) => id),
    },
    /** The local checks of OpenEnv's RFC 008 that these criteria judge, and what the others need. */
    rfc008: rfc008Checks(criteria),
    criteria,
  };
}

/**
 * The checks of OpenEnv's RFC 008 (environment auto-validation) that authors run, by the criteria that were judged. Those that need
 * the package, a sandbox or an oracle are skipped, and say so in `needs`.
 */
export function rfc008Checks(criteria: readonly Criterion[]) {
  return Object.entries<string | string[]>(RFC008).map(([check_id, from]) => {
    const judged = criteria.filter(({ id, passed }) => from.includes(id) && passed !== null);
    const needs =
      typeof from === 'string' ? `the ${from}` : judged.length === 0 ? 'a criterion that applies' : null;
    const verdict = judged.every(({ passed }) => passed) ? 'pass' : 'fail';
    const status: 'pass' | 'fail' | 'skip' = needs === null ? verdict : 'skip';
    return { check_id, status, judged_by: needs === null ? judged.map(({ id }) => id) : [], needs };
  });
}
