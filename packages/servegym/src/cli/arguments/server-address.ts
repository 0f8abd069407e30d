import { baseUrl } from '@servegym/openenv';
import { InvalidArgumentError } from 'commander';

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
