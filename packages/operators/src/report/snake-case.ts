type SnakeName<Name extends string, Done extends string = ''> = string extends Name
  ? string
  : Name extends `${infer First}${infer Rest}`
    ? SnakeName<Rest, First extends Lowercase<First> ? `${Done}${First}` : `${Done}_${Lowercase<First>}`>
    : Done;

/** A type whose names in camelCase are in snake_case, at any depth. */
export type SnakeCase<T> = T extends readonly (infer Item)[]
  ? readonly SnakeCase<Item>[]
  : T extends object
    ? { readonly [Name in keyof T as Name extends string ? SnakeName<Name> : Name]: SnakeCase<T[Name]> }
    : T;

/** First letter of a word behind another; `FP16` has none. */
const CAPITAL = /(?<=[a-z0-9])[A-Z]|(?<=[A-Z])[A-Z](?=[a-z])/g;

/** A value whose names in camelCase become snake_case, at any depth: `simulatedS` is `simulated_s`. */
export function snakeCase<T>(value: T): SnakeCase<T> {
  const convert = (each: unknown): unknown => {
    if (Array.isArray(each)) return each.map(convert);
    if (typeof each !== 'object' || each === null || ArrayBuffer.isView(each)) return each;
    return Object.fromEntries(
      Object.entries(each).map(([name, inner]) => [
        name.replace(CAPITAL, (letter) => `_${letter.toLowerCase()}`),
        convert(inner),
      ]),
    );
  };
  return convert(value) as SnakeCase<T>;
}
