import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { isHostPattern } from '@servegym/openenv';
import { baseUrl } from '@servegym/openenv/client';
import { InvalidArgumentError } from 'commander';

/** `--allowed-hosts` of commands that listen. */
export const allowedHosts = {
  value: '<names>',
  help: 'host names that clients may use beside those of this machine, with commas; * is any',
  env: 'SERVEGYM_ALLOWED_HOSTS',
  repeated: true,
  parse: hostPatterns,
} as const;

/** Adds the name at which a server listens; for one that listens on all addresses, that of the machine. */
export function withBoundName(allowedHosts: readonly string[], host: string): readonly string[] {
  const name = host === '0.0.0.0' || host === '::' ? hostname() : host;
  return isIP(name) === 0 && isHostPattern(name) ? [...allowedHosts, name] : allowedHosts;
}

function hostPatterns(text: string): readonly string[] {
  const patterns = text.split(',').map((pattern) => pattern.trim());
  const wrong = patterns.find((pattern) => !isHostPattern(pattern));
  if (wrong === undefined) return patterns;
  throw new InvalidArgumentError(
    `Expected names such as gym.example.com, *.example.com or *, without a scheme or a port, got \`${wrong}\`.`,
  );
}

/** An argument parser for the address of a server, `http(s)` or `ws(s)`. The base gets a slash at its end. */
export function serverAddress(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^(http|ws)s?:$/.test(url.protocol)) {
    throw new InvalidArgumentError(
      `Expected an address that begins with http:// or https://, got \`${text}\`.`,
    );
  }
  return baseUrl(url);
}
