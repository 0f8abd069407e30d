/** A deliberate fault of a source file. */
export interface Fault {
  /** Text that stands in the file exactly once. */
  readonly search: string;
  /** Text that takes its place. */
  readonly replace: string;
}

/**
 * The source with the fault in it.
 * @throws Error when the text to replace is not there exactly once
 */
export function faultySource(source: string, { search, replace }: Fault): string {
  const times = source.split(search).length - 1;
  if (times !== 1) throw new Error(`Expected \`${search}\` once, found it ${times} times`);
  return source.replace(search, () => replace);
}
