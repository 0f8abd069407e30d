import { InputError } from '../../input-error.ts';

/** Files that a process has open beside its sockets, generously. */
const OTHER_FILES = 64;

/** Most files that this process may have open; `null` where the system does not tell. */
export function openFileLimit(): number | null {
  // The types of Node do not know `excludeNetwork` yet.
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork: boolean };
  const excludedNetwork = report.excludeNetwork;
  // Looking up the names of peers would take seconds.
  report.excludeNetwork = true;
  const { userLimits } = report.getReport() as {
    userLimits?: { open_files?: { soft: number | 'unlimited' } };
  };
  report.excludeNetwork = excludedNetwork;
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : null;
}

/** @throws InputError when so many sockets cannot be open at once. */
export function requireOpenFiles(sockets: number, limit = openFileLimit()): void {
  const needed = sockets + OTHER_FILES;
  if (limit === null || limit >= needed) return;
  throw new InputError(
    `${sockets} sessions need ${needed} open files, but this process may have ${limit}. Raise the limit with \`ulimit -n ${needed}\`, or ask for at most ${Math.max(1, limit - OTHER_FILES)} sessions.`,
  );
}
