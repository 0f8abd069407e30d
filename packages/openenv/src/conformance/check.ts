import type { Subject } from './subject.ts';

/** What a check found out. */
export interface Finding {
  /** `null` where the check does not apply; `details` say why. */
  readonly passed: boolean | null;
  readonly details?: string;
  readonly expected?: unknown;
  readonly actual?: unknown;
}

/** One thing that an OpenEnv server is asked to do right. */
export interface Check {
  /** Stable. */
  readonly id: string;
  readonly description: string;
  /** Whether clients rely on it. The others are advice: OpenEnv's own server does not do all of them. */
  readonly required: boolean;
  /** Throws `CheckFailure`, or any other error, when the server does not play along. */
  readonly run: (subject: Subject) => Promise<Finding> | Finding;
}

/** A check with what it found out. */
export interface Criterion extends Finding {
  readonly id: string;
  readonly description: string;
  readonly required: boolean;
}

/** The server did not do what a check needs. */
export class CheckFailure extends Error {
  override readonly name: string = 'CheckFailure';
}

/** The server did not answer in time. */
export class NoReplyFailure extends CheckFailure {
  override readonly name = 'NoReplyFailure';
}

export const PASSED: Finding = { passed: true };

export function failed(details: string): Finding {
  return { passed: false, details };
}

export function notApplicable(details: string): Finding {
  return { passed: null, details };
}

/** Passed when nothing is wrong. */
export function unless(flaw: string | false | null | undefined): Finding {
  return flaw ? failed(flaw) : PASSED;
}
