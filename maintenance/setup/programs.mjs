import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The path of the first of `names` that PATH has, or `undefined`. */
export function findProgram(...names) {
  for (const name of names) {
    for (const directory of (process.env.PATH ?? '').split(delimiter)) {
      if (directory && isExecutable(join(directory, name))) return join(directory, name);
    }
  }
  return undefined;
}

/** Whether `path` is a file that may be run. */
export function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
