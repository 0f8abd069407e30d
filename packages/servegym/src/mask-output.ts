import { maskUrls } from '@servegym/openenv/mask-urls';

/** Masks the credentials of URLs in all text that is written to a stream from now on. */
export function maskOutput(stream: Pick<NodeJS.WriteStream, 'write'>): void {
  const write = stream.write.bind(stream) as (chunk: unknown, ...rest: unknown[]) => boolean;
  stream.write = (chunk: unknown, ...rest: unknown[]) =>
    write(typeof chunk === 'string' ? maskUrls(chunk) : chunk, ...rest);
}
