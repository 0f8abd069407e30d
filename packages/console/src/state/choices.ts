import type { Knob, ServerAbilities } from '../api/action-schema.ts';
import type { Fields, PolicyInfo, Task } from '../api/wire.ts';
import environments from '../environments.json' with { type: 'json' };
import { BY_HAND, RUN_PLACES } from './run.ts';

/**
 * What the page knows of an environment by its name: the environment in a sentence, the policy that plays where the
 * address names none, and its knobs. All else it learns from the server.
 */
export const ENVIRONMENTS: Readonly<
  Record<string, (typeof environments)[keyof typeof environments] | undefined>
> = environments;

/** Whether the page knows an environment by its name, and so its words. */
export function isKnown(environment: { readonly name: string } | undefined): boolean {
  return environment !== undefined && Object.hasOwn(ENVIRONMENTS, environment.name);
}

/** Choices kept in the address bar: the episode to play, and its players. */
export interface Choices {
  readonly task?: string;
  readonly seed?: number;
  /** Players, a run each; at most `RUN_PLACES`. */
  readonly policies: readonly string[];
  /** Further options of the reset. */
  readonly options: Fields;
  /** A sentence for each part of the address that cannot be what it says. */
  readonly faults?: readonly string[];
}

/** The largest seed that every JSON reader keeps exact. */
export const LARGEST_SEED = Number.MAX_SAFE_INTEGER;

/** Start of the fragment of an address that carries an episode. */
export const EPISODE_FRAGMENT = '#episode=';

const OPTION = 'option.';

/** Reads the query of an address. Malformed parts are absent from the choices and named in `faults`. */
export function readChoices(query: string): Choices {
  const parameters = new URLSearchParams(query);
  const seed = parameters.get('seed') ?? undefined;
  const isSeed = seed !== undefined && /^\d{1,16}$/.test(seed) && Number(seed) <= LARGEST_SEED;
  const policies = parameters.getAll('policy');
  const faults: string[] = [];
  if (seed !== undefined && !isSeed)
    faults.push(`Expected the seed to be a whole number from 0 to ${LARGEST_SEED}, got “${seed}”.`);
  if (policies.length > RUN_PLACES)
    faults.push(`Expected at most ${RUN_PLACES} policies, got ${policies.length}.`);
  return {
    task: parameters.get('task') ?? undefined,
    seed: isSeed ? Number(seed) : undefined,
    policies: policies.slice(0, RUN_PLACES),
    faults,
    options: Object.fromEntries(
      [...parameters].flatMap(([name, text]) =>
        name.startsWith(OPTION) ? [[name.slice(OPTION.length), optionValue(text)]] : [],
      ),
    ),
  };
}

/** The query that `readChoices` reads back. */
export function writeChoices({ task, seed, policies, options }: Choices): string {
  const parameters = new URLSearchParams();
  if (task !== undefined) parameters.set('task', task);
  if (seed !== undefined) parameters.set('seed', String(seed));
  for (const policy of policies) parameters.append('policy', policy);
  for (const [name, value] of Object.entries(options))
    parameters.set(OPTION + name, typeof value === 'string' ? value : JSON.stringify(value));
  return `?${parameters}`;
}

/** Numbers, booleans and objects are written as JSON, texts as they are. */
function optionValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The task asked for, or an easy one, else the first. */
export function pickTask(tasks: readonly Task[], wanted: string | undefined): string | undefined {
  const found =
    tasks.find(({ id }) => String(id) === wanted) ??
    tasks.find(({ difficulty }) => difficulty === 'easy') ??
    tasks[0];
  return found && String(found.id);
}

/** The wanted drivers that exist; else the standard policy of the environment, else by hand. */
export function pickDrivers(policies: readonly PolicyInfo[], wanted: readonly string[]): string[] {
  const names = policies.map(({ name }) => name);
  const known = wanted.filter((name) => name === BY_HAND || names.includes(name));
  if (known.length > 0) return known;
  const standard = Object.values(ENVIRONMENTS).map((known) => known?.policy);
  return [names.find((name) => standard.includes(name)) ?? BY_HAND];
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
