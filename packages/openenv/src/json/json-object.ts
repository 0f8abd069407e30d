export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a parsed JSON value is an object (and neither an array nor null). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
