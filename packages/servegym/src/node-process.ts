import { maskUrls } from '@servegym/openenv/mask-urls';
import { InputError } from './cli/failure.ts';

/** The oldest Node that has all that the commands use: `engines` of the package. */
export const OLDEST_NODE = '22.18';

/** @throws InputError `NODE_TOO_OLD` before a command fails on something that this Node lacks */
export function requireNode(version = process.versions.node): void {
  if (version.localeCompare(OLDEST_NODE, 'en', { numeric: true }) >= 0) return;
  throw new InputError(
    `expected Node ${OLDEST_NODE} or newer, got ${version}: install a newer one, for example with \`nvm install 24\``,
    { code: 'NODE_TOO_OLD' },
  );
}

/** Masks the credentials of URLs in all text that is written to a stream from now on. */
export function maskOutput(stream: Pick<NodeJS.WriteStream, 'write'>): void {
  const write = stream.write.bind(stream) as (chunk: unknown, ...rest: unknown[]) => boolean;
  stream.write = (chunk: unknown, ...rest: unknown[]) =>
    write(typeof chunk === 'string' ? maskUrls(chunk) : chunk, ...rest);
}
