import { isJsonObject } from '../protocol/read-json.ts';
import type { InspectionSocket, Subject } from './subject.ts';

/** Result of a check. */
export interface Finding {
  /** `null` where the check does not apply; `details` say why. */
  readonly passed: boolean | null;
  readonly details?: string;
  readonly expected?: unknown;
  readonly actual?: unknown;
}

/** One thing that an OpenEnv server is asked to do right. It throws `CheckFailure`, or any other error, when the server does not play along. */
export type Check = {
  /** Stable. */
  readonly id: string;
  readonly description: string;
  /** True when clients rely on it. The others are advice: OpenEnv's own server does not do all of them. */
  readonly required: boolean;
} & (
  | { run(subject: Subject): Promise<Finding> | Finding }
  /** Needs a session of its own. */
  | { inSession(socket: InspectionSocket, subject: Subject): Promise<Finding> | Finding }
);

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

/** The value at a path of keys; `undefined` where there is none. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let target = value;
  for (const key of path)
    target = isJsonObject(target) && Object.hasOwn(target, key) ? target[key] : undefined;
  return target;
}

/** JSON short enough for a sentence. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/** The first difference of two JSON values, with its path `$.a.b`; `null` when they are equal. */
export function firstDifference(a: unknown, b: unknown, path = '$'): string | null {
  if (Array.isArray(a) && Array.isArray(b)) {
    if (a.length !== b.length) return `${path} has ${a.length} and ${b.length} entries`;
    return first(a.map((each, index) => firstDifference(each, b[index], `${path}[${index}]`)));
  }
  if (isJsonObject(a) && isJsonObject(b)) {
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
    return first(keys.map((key) => firstDifference(at(a, key), at(b, key), `${path}.${key}`)));
  }
  return Object.is(a, b) ? null : `${path} is ${shown(a)} and ${shown(b)}`;
}

function first(differences: readonly (string | null)[]): string | null {
  return differences.find((difference) => difference !== null) ?? null;
}
