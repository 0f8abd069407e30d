import type { Knob, ServerAbilities } from '../api/action-schema.ts';
import type { Fields, PolicyInfo, Task } from '../api/wire.ts';
import type { Choices } from '../state/choices.ts';
import { BY_HAND } from '../state/run.ts';

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
  return [
    ...(task === undefined ? [] : unknown('task', task, taskIds)),
    ...faults,
    ...[...new Set(players)].flatMap((name) => unknown('policy', name, names)),
    ...Object.entries(options).flatMap(([name, value]) => {
      const option = resetOptions.find((one) => one.name === name);
      if (!option)
        return unknown(
          'option',
          name,
          resetOptions.map((one) => one.name),
        );
      const expected = expectedOf(option, value);
      return expected ? [`Expected ${name} to be ${expected}, got “${String(value)}”.`] : [];
    }),
  ];
}

/** Values that an option takes, where `value` is not among them. Texts and JSON are left to the server to judge. */
function expectedOf(option: Knob, value: unknown): string | undefined {
  switch (option.kind) {
    case 'choice':
      return option.values.includes(value) ? undefined : option.values.map(String).join(', ');
    case 'switch':
      return typeof value === 'boolean' ? undefined : 'true or false';
    case 'number':
    case 'range': {
      const { minimum = -Infinity, maximum = Infinity, integer } = option;
      const kind = integer ? 'a whole number' : 'a number';
      const fits = integer ? Number.isSafeInteger(value) : Number.isFinite(value);
      if (fits && Number(value) >= minimum && Number(value) <= maximum) return undefined;
      const from = minimum === -Infinity ? '' : ` from ${minimum}`;
      return `${kind}${from}${maximum === Infinity ? '' : ` to ${maximum}`}`;
    }
    case 'text':
    case 'json':
      return undefined;
  }
}

/** The wanted options that a reset of the server takes, with values that it can take. */
export function pickOptions({ resetOptions }: ServerAbilities, wanted: Fields): Fields {
  return Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) => {
      const option = resetOptions.find((one) => one.name === name);
      return option !== undefined && expectedOf(option, value) === undefined;
    }),
  );
}
