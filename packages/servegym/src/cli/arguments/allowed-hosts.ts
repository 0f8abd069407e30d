import { isIP } from 'node:net';
import { isHostPattern } from '@servegym/openenv';
import { InvalidArgumentError, Option } from 'commander';

/** `--allowed-hosts` of commands that listen. */
export function allowedHostsOption(): Option {
  return new Option(
    '--allowed-hosts <names>',
    'names under which clients may reach the server, with commas between them: gym.example.com, *.example.com, or * for any. localhost and its addresses always may',
  )
    .env('SERVEGYM_ALLOWED_HOSTS')
    .argParser(hostPatterns)
    .default([], 'none');
}

/** Adds the name at which a server listens, if it listens at a name. */
export function withBoundName(allowedHosts: readonly string[], host: string): readonly string[] {
  return isIP(host) === 0 && isHostPattern(host) ? [...allowedHosts, host] : allowedHosts;
}

function hostPatterns(text: string, before: readonly string[]): readonly string[] {
  const patterns = text.split(',').map((pattern) => pattern.trim());
  const wrong = patterns.find((pattern) => !isHostPattern(pattern));
  if (wrong === undefined) return [...before, ...patterns];
  throw new InvalidArgumentError(
    `Expected names such as gym.example.com, *.example.com or *, without a scheme or a port, got \`${wrong}\`.`,
  );
}
