import { isJsonObject } from '../json/json-object.ts';

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

/** Where two JSON values differ first, as `$.a.b`; `null` when they are equal. */
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
