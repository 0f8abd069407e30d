import type { ServerAbilities } from '../api/server-abilities.ts';
import type { Fields, PolicyInfo, Task } from '../api/wire.ts';
import type { Choices } from './choices.ts';
import { BY_HAND } from './run.ts';

/** The task asked for, or the hardest: the last one. */
export function pickTask(tasks: readonly Task[], wanted: string | undefined): string | undefined {
  const ids = tasks.map(({ id }) => String(id));
  return wanted !== undefined && ids.includes(wanted) ? wanted : ids.at(-1);
}

/** A sentence for each choice that this server does not have, with those that it has. */
export function faultsOf(
  { task, policies: players, options, faults = [] }: Choices,
  tasks: readonly Task[],
  policies: readonly PolicyInfo[],
  { resetOptions }: ServerAbilities,
): string[] {
  const unknown = (what: string, name: string, known: readonly string[]): string[] =>
    known.includes(name)
      ? []
      : [
          `There is no ${what} “${name}”: ${known.length > 0 ? `expected ${known.join(', ')}` : 'this environment has none'}.`,
        ];
  const names = [...policies.map(({ name }) => name), BY_HAND];
  const taskIds = tasks.map(({ id }) => String(id));
  const optionNames = resetOptions.map(({ name }) => name);
  return [
    ...(task === undefined ? [] : unknown('task', task, taskIds)),
    ...faults,
    ...[...new Set(players)].flatMap((name) => unknown('policy', name, names)),
    ...Object.keys(options).flatMap((name) => unknown('option', name, optionNames)),
  ];
}

/** Those asked for that there are; else the heuristic, else by hand. */
export function pickDrivers(policies: readonly PolicyInfo[], wanted: readonly string[]): string[] {
  const names = policies.map(({ name }) => name);
  const known = wanted.filter((name) => name === BY_HAND || names.includes(name));
  if (known.length > 0) return known;
  return [['heuristic', 'baseline'].find((name) => names.includes(name)) ?? BY_HAND];
}

/** Those of the wanted options that a reset of the server takes. */
export function pickOptions({ resetOptions }: ServerAbilities, wanted: Fields): Fields {
  const names = resetOptions.map(({ name }) => name);
  return Object.fromEntries(Object.entries(wanted).filter(([name]) => names.includes(name)));
}
