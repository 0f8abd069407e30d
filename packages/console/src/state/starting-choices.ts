import type { ServerAbilities } from '../api/server-abilities.ts';
import type { Fields, PolicyInfo, Task } from '../api/wire.ts';
import { BY_HAND } from './run.ts';

/** The task asked for, or the hardest: the last one. */
export function pickTask(tasks: readonly Task[], wanted: string | undefined): string | undefined {
  const ids = tasks.map(({ id }) => String(id));
  return wanted !== undefined && ids.includes(wanted) ? wanted : ids.at(-1);
}

/** Those asked for that there are; else the heuristic, else by hand. */
export function pickDrivers(policies: readonly PolicyInfo[], wanted: readonly string[]): string[] {
  const names = policies.map(({ name }) => name);
  const known = wanted.filter((name) => name === BY_HAND || names.includes(name));
  if (known.length > 0) return known;
  return [['heuristic', 'baseline'].find((name) => names.includes(name)) ?? BY_HAND];
}

/** Options that the page has a control for. */
export function namedOptions({ resetOptions }: ServerAbilities, options: Fields): Fields {
  return Object.fromEntries(
    Object.entries(options).filter(([name]) => resetOptions.some((option) => option.name === name)),
  );
}
