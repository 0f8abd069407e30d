import { isDeepStrictEqual } from 'node:util';
import { isJsonObject } from '../protocol/read-json.ts';
import CRITERIA from './criteria.json' with { type: 'json' };
import type { InspectionSocket, Subject } from './subject.ts';

/** Result of a check. */
export interface Finding {
  /** `null` where the check does not apply; `details` say why. */
  readonly passed: boolean | null;
  readonly details?: string;
  readonly expected?: unknown;
  readonly actual?: unknown;
}

/** A check with what it found out. */
export interface Criterion extends Finding {
  /** Stable. */
  readonly id: string;
  readonly description: string;
  /** True when clients rely on it. The others are advice: OpenEnv's own server does not do all of them. */
  readonly required: boolean;
}

/** What a check answers: a flaw as text, nothing where all is well, or a finding. What it throws is a flaw too. */
type Verdict = Finding | string | null | undefined | false;
type Judge = () => Verdict | Promise<Verdict>;

/** The run of a check: it asks an OpenEnv server for one thing. */
export type Run = (subject: Subject) => ReturnType<Judge>;
export type CriterionId = keyof typeof CRITERIA;
/** Checks by their criteria, in the order in which they are run. */
export type Checks = Readonly<Partial<Record<CriterionId, Run>>>;

/** The run of a check that needs a session of its own. */
export function inSession(run: (socket: InspectionSocket, subject: Subject) => ReturnType<Judge>): Run {
  return (subject) => subject.withSession(async (socket) => run(socket, subject));
}

export async function criterionOf(id: CriterionId, judge: Judge): Promise<Criterion> {
  const verdict = await Promise.resolve()
    .then(judge)
    .catch((error: Error) => error.message);
  const finding: Finding =
    typeof verdict === 'string' && verdict !== ''
      ? { passed: false, details: verdict }
      : verdict || { passed: true };
  return { id, ...CRITERIA[id], ...finding };
}

export function compared(expected: unknown, actual: unknown): Finding {
  return { passed: isDeepStrictEqual(actual, expected), expected, actual };
}

export function notApplicable(details: string): Finding {
  return { passed: null, details };
}

/** The first flaw among some things; `null` when there is none. */
export function firstFlaw<Item>(
  items: readonly Item[],
  flawOf: (item: Item, index: number) => string | null,
): string | null {
  for (const [index, item] of items.entries()) {
    const flaw = flawOf(item, index);
    if (flaw !== null) return flaw;
  }
  return null;
}

/** The value at a path of keys; `undefined` where there is none. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (target, key) => (isJsonObject(target) && Object.hasOwn(target, key) ? target[key] : undefined),
    value,
  );
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
    return firstFlaw(a, (each, index) => firstDifference(each, b[index], `${path}[${index}]`));
  }
  if (isJsonObject(a) && isJsonObject(b)) {
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
    return firstFlaw(keys, (key) => firstDifference(at(a, key), at(b, key), `${path}.${key}`));
  }
  return Object.is(a, b) ? null : `${path} is ${shown(a)} and ${shown(b)}`;
}
