import { posix } from 'node:path';
import type { SourceFile } from './source-file.ts';

/**
 * The circles in which files of a package import each other as they are loaded, each as `a.ts -> b.ts -> a.ts`: some of
 * them would run before what they import has. Imports of types and by `import()` close no circle.
 *
 * @param sources by their path from the package's folder, with `/`
 */
export function importCircles(sources: ReadonlyMap<string, SourceFile>): string[] {
  const circles: string[] = [];
  const followed = new Set<string>();
  const follow = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start >= 0) circles.push([...trail.slice(start), path].join(' -> '));
    if (followed.has(path)) return;
    followed.add(path);
    for (const next of loadedWith(path, sources.get(path))) follow(next, [...trail, path]);
  };
  for (const path of sources.keys()) follow(path, []);
  return circles;
}

function loadedWith(path: string, source: SourceFile | undefined): string[] {
  return (source?.requests ?? []).flatMap(({ specifier, isTypeOnly, isLazy }) =>
    specifier?.startsWith('.') && !isTypeOnly && !isLazy ? [posix.join(posix.dirname(path), specifier)] : [],
  );
}
