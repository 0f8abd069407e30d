import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { isHostPattern } from '@servegym/openenv';
import { baseUrl } from '@servegym/openenv/client';
import { InvalidArgumentError } from 'commander';

/** Argument parsers for the numbers that `fits` takes. */
function numberParser(
  words: (low: number, high: number) => string,
  fits: (value: number, low: number) => boolean,
) {
  return (low: number, high = Number.MAX_VALUE) =>
    (text: string): number => {
      const value = text.trim() === '' ? Number.NaN : Number(text);
      if (fits(value, low) && value <= high) return value;
      throw new InvalidArgumentError(`Expected ${words(low, high)}, got \`${text}\`.`);
    };
}

/** An argument parser for a number above `low` and not above `high`. */
export const numberAbove = numberParser(
  (low, high) => `a number above ${low}${high === Number.MAX_VALUE ? '' : ` and at most ${high}`}`,
  (value, low) => value > low,
);
/** An argument parser for a number in a range, ends included. */
export const numberFrom = numberParser(
  (low, high) => `a number from ${low} to ${high}`,
  (value, low) => value >= low,
);

/** An argument parser for a whole number in a range, ends included. */
export function wholeNumber(low: number, high = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= low && value <= high) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${low} to ${high}, got \`${text}\`.`);
  };
}

type NumberOption = Readonly<{ value: string; help: string; parse: (text: string) => number }>;
type NumberArguments = [value: string, low: number, high: number, help: string];

/** Options whose value is a number: by placeholder, ends of the range and help, with the default where there is one. */
function numberOption(parser: (low: number, high?: number) => (text: string) => number) {
  function option(...given: NumberArguments): NumberOption;
  function option(
    ...given: [...NumberArguments, initial: number]
  ): NumberOption & { readonly default: number };
  function option(value: string, low: number, high: number, help: string, initial?: number): NumberOption {
    return { value, help, parse: parser(low, high), ...(initial !== undefined && { default: initial }) };
  }
  return option;
}

/** An option that is a whole number in a range, ends included. */
export const whole = numberOption(wholeNumber);
/** An option that is a number above `low` and not above `high`. */
export const above = numberOption(numberAbove);
/** An option that is a number in a range, ends included. */
export const within = numberOption(numberFrom);

const BYTES: Readonly<Record<string, number>> = {
  '': 1,
  ...{ kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12 },
  ...{ kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40 },
};

/** An argument parser for a number of bytes from `low` on, such as `500MB` or `2GiB`. */
export function byteCount(low: number): (text: string) => number {
  return (text) => {
    const [, number, unit] = /^(\d+(?:\.\d+)?) ?([kmgt]i?b)?$/i.exec(text.trim()) ?? [];
    const value = Math.floor(Number(number) * BYTES[(unit ?? '').toLowerCase()]);
    if (value >= low) return value;
    throw new InvalidArgumentError(
      `Expected at least ${low} bytes, as a number or as \`500MB\` or \`2GiB\`, got \`${text}\`.`,
    );
  };
}

/** An argument parser for a JSON object. */
export function jsonObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new InvalidArgumentError(`Expected a JSON object, got \`${text}\`.`);
}

/** An argument parser for values by their names, such as `history=6,decide-every=4`; each name has a parser of its own. */
export function namedValues<const T extends Readonly<Record<string, { parse(text: string): unknown }>>>(
  table: T,
): (text: string) => { readonly [Name in keyof T]?: ReturnType<T[Name]['parse']> } {
  return (text) => {
    const pairs = text.split(',').map((pair) => {
      const [name = '', value = ''] = pair.split(/=(.*)/s);
      if (Object.hasOwn(table, name)) return [name, table[name]!.parse(value)];
      throw new InvalidArgumentError(
        `Expected NAME=VALUE with a name of ${Object.keys(table).join(', ')}, got \`${pair}\`.`,
      );
    });
    return Object.fromEntries(pairs);
  };
}

/** Ends of a range such as `1..8`; `undefined` where the text is none. */
export function rangeOf(text: string): readonly [from: number, to: number] | undefined {
  const [, from, to] = /^(\d+)\.\.(\d+)$/.exec(text.trim()) ?? [];
  return to === undefined || Number(to) < Number(from) ? undefined : [Number(from), Number(to)];
}

/** Parses `0.2,0.5,0.3`, the shares of priority classes, the most urgent first. */
export function parseShares(text: string): number[] {
  const shares = text.split(',').map((share) => (share.trim() === '' ? Number.NaN : Number(share)));
  if (shares.every((share) => share >= 0 && share < Number.POSITIVE_INFINITY)) return shares;
  throw new InvalidArgumentError(`Expected shares such as \`0.2,0.8\`, got \`${text}\`.`);
}

/** `--port` and `--host` of commands that listen, with the variables that stand for them. */
export const listenOptions = (port: number) =>
  ({
    port: { ...whole('<number>', 0, 65535, 'port to listen on; 0 takes any free one', port), env: 'PORT' },
    host: {
      value: '<address>',
      help: 'address to listen on; 0.0.0.0 is all',
      env: 'HOST',
      default: '127.0.0.1',
    },
  }) as const;

/** `--allowed-hosts` of commands that listen. */
export const allowedHosts = {
  value: '<names>',
  help: 'host names that clients may use beside those of this machine, with commas; * is any',
  env: 'SERVEGYM_ALLOWED_HOSTS',
  repeated: true,
  parse(text: string): readonly string[] {
    const patterns = text.split(',').map((pattern) => pattern.trim());
    const wrong = patterns.find((pattern) => !isHostPattern(pattern));
    if (wrong === undefined) return patterns;
    throw new InvalidArgumentError(
      `Expected names such as gym.example.com, *.example.com or *, without a scheme or a port, got \`${wrong}\`.`,
    );
  },
} as const;

/** The name at which a server listens; for one that listens on all addresses, that of the machine. */
export const boundName = (host: string) => (host === '0.0.0.0' || host === '::' ? hostname() : host);

/** Adds the name at which a server listens. */
export function withBoundName(allowedHosts: readonly string[], host: string): readonly string[] {
  const name = boundName(host);
  return isIP(name) === 0 && isHostPattern(name) ? [...allowedHosts, name] : allowedHosts;
}

/** An argument parser for the address of a server, `http(s)` or `ws(s)`. The base gets a slash at its end. */
export function serverAddress(text: string): URL {
  const url = URL.parse(text);
  if (url && /^(http|ws)s?:$/.test(url.protocol)) return baseUrl(url);
  throw new InvalidArgumentError(
    `Expected an address that begins with http:// or https://, got \`${text}\`.`,
  );
}
