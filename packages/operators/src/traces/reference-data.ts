import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { TuningError } from '../search/slo.ts';
/*
 * Measurements and traces of others, which the repository does not hold. docs/reference-data.md has their columns.
 * Recorded loads: request by request, but for two of which a third and more of the requests failed.
 */
import REFERENCE_DATA from './reference-data.json' with { type: 'json' };

export { REFERENCE_DATA };

export interface ReferenceFile {
  /** Path in the folder that `--data` names. */
  readonly path: string;
  /** Name under which the source publishes the same file. */
  readonly publishedAs?: string;
  /** Source and licence. */
  readonly source: string;
}

/**
 * Paths of reference files below `folder`, in their order. A file may also lie in the folder itself.
 * @throws TuningError that names every file that is missing, and its source.
 */
export function findReferenceFiles(folder: string, files: readonly ReferenceFile[]): string[] {
  const found = files.map(({ path, publishedAs }) =>
    [path, basename(path), publishedAs ?? path].map((name) => join(folder, name)).find(existsSync),
  );
  const missing = files.filter((_, i) => found[i] === undefined);
  if (missing.length > 0) {
    const lines = missing.map(({ path, publishedAs, source }) => {
      const also = publishedAs === undefined ? '' : ` (or ${publishedAs})`;
      return `  ${path}${also}, from ${source}\n`;
    });
    throw new TuningError(
      'REFERENCE_DATA_MISSING',
      `REFERENCE_DATA_MISSING: ${folder} lacks\n${lines.join('')}The repository does not hold them: docs/reference-data.md says how to get them and which columns they have.`,
    );
  }
  return found as string[];
}
