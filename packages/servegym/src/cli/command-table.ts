import { Argument, Command, Option } from 'commander';
import { EXIT_STATUS, type Verdict } from './failure.ts';
import { requireWritable } from './files.ts';

/** An option of a command. Its name in camelCase is its key: `maxNumSeqs` is `--max-num-seqs`. */
interface OptionEntry {
  /** Placeholder of its value, `<n>`, or `[n]` where the value may be left out. Without one it is a switch. */
  readonly value?: string;
  readonly help: string;
  /** Reads the value from text. The value is text without it. */
  readonly parse?: (text: string) => unknown;
  /** Whether it may be given several times; its value is then the list of all. */
  readonly repeated?: true;
  readonly choices?: readonly string[];
  /** A switch is false without one; of one that is true by default, the option is `--no-...`. */
  readonly default?: unknown;
  /** Default in the help, where it is not the value. */
  readonly defaultText?: string;
  /** Text that stands for a value that is left out. */
  readonly preset?: string;
  readonly required?: true;
  /** Whether it names a file that the command writes, which is refused before the action begins where it cannot be. */
  readonly writes?: true;
  /** Environment variable that stands for the option. */
  readonly env?: string;
  /** Keys of options that it does not go together with. */
  readonly conflicts?: readonly string[];
  /** Heading in the help, also of the options after it. */
  readonly group?: string;
}

export type OptionTable = Readonly<Record<string, OptionEntry>>;

/** A word after the name of a command: `<file>`, `[file]` or `[files...]`. */
interface WordEntry extends Pick<OptionEntry, 'help' | 'parse' | 'choices' | 'writes'> {
  readonly value: string;
}
export type WordTable = Readonly<Record<string, WordEntry>>;

type Read<E> = E extends { readonly choices: readonly (infer C)[] }
  ? C
  : E extends { readonly parse: (text: string) => infer V }
    ? V
    : E extends { readonly value: string }
      ? string
      : boolean;
/** `<n...>` takes several values, `<n,...>` one. */
type IsMany<E> = E extends { readonly repeated: true }
  ? true
  : E extends { readonly value: `${string},...${string}` }
    ? false
    : E extends { readonly value: `${string}...${string}` }
      ? true
      : false;
type Given<E> =
  IsMany<E> extends true
    ? readonly Read<E>[]
    : E extends { readonly default: unknown } | { readonly required: true }
      ? Read<E>
      : E extends { readonly value: string }
        ? Read<E> | undefined
        : Read<E>;

/** Values of a table of options, as a command gets them. */
export type OptionValues<T extends OptionTable> = { readonly [K in keyof T]: Given<T[K]> };
type WordValues<T extends WordTable> = {
  readonly [K in keyof T]: T[K] extends { readonly value: `<${infer Name}>` }
    ? Name extends `${string}...`
      ? readonly Read<T[K]>[]
      : Read<T[K]>
    : Given<T[K]>;
};

interface CommandTable<W extends WordTable, O extends OptionTable> {
  readonly words?: W;
  readonly options: O;
  /** Text below the options: examples, each a line. */
  readonly after?: string;
  /** Its answer is the exit status; none is `yes`. */
  readonly action: (
    values: WordValues<W> & OptionValues<O>,
  ) => Promise<Verdict | undefined> | Promise<void> | void;
}

/** Placeholder of several values, as Commander has it. */
const SEVERAL = /\w\.\.\.[>\]]$/;

/** A command from one table: its words and options, whose types its action gets, and its help. */
export function defineCommand<const O extends OptionTable, const W extends WordTable = Record<never, never>>({
  words = {} as W,
  options,
  after,
  action,
}: CommandTable<W, O>): Command {
  const command = new Command();
  for (const { value, help, parse, choices } of Object.values<WordEntry>(words)) {
    const word = new Argument(value, help);
    if (choices !== undefined) word.choices(choices);
    if (parse !== undefined) word.argParser((text) => parse(text));
    command.addArgument(word);
  }
  for (const [key, entry] of Object.entries<OptionEntry>(options)) {
    if (entry.group !== undefined) command.optionsGroup(entry.group);
    command.addOption(optionOf(key, entry));
  }
  if (after !== undefined) command.addHelpText('after', `\n${after}`);
  const none = Object.fromEntries(
    Object.entries<OptionEntry>(options).flatMap(([key, { repeated, value }]): [string, unknown][] => {
      if (repeated || (value !== undefined && SEVERAL.test(value))) return [[key, []]];
      return value === undefined ? [[key, false]] : [];
    }),
  );
  return command.action(async (...given: unknown[]) => {
    const named = Object.fromEntries(Object.keys(words).map((key, i) => [key, given[i]]));
    const values = { ...none, ...command.opts(), ...named };
    for (const [key, { writes }] of Object.entries<OptionEntry | WordEntry>({ ...words, ...options }))
      if (writes) await requireWritable(values[key]);
    const verdict = await action(values as WordValues<W> & OptionValues<O>);
    if (verdict) process.exitCode = EXIT_STATUS[verdict];
  });
}

/** The flag of an option: that of `maxNumSeqs` is `--max-num-seqs`. */
export function flagOf(key: string): string {
  return `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function optionOf(key: string, entry: OptionEntry): Option {
  const { value, help, parse, choices, default: initial, defaultText, preset, env, conflicts } = entry;
  const flag = value === undefined && initial === true ? flagOf(key).replace('--', '--no-') : flagOf(key);
  const option = new Option(value === undefined ? flag : `${flag} ${value}`, help);
  if (choices !== undefined) option.choices(choices);
  if (entry.repeated)
    option.argParser((text, before: readonly unknown[] = []) => [...before, parse ? parse(text) : text]);
  else if (parse !== undefined) option.argParser((text) => parse(text));
  // Commander knows the default of `--no-...`, and would show that of a switch.
  if (value !== undefined && initial !== undefined) option.default(initial, defaultText);
  if (preset !== undefined) option.preset(preset);
  if (env !== undefined) option.env(env);
  if (conflicts !== undefined) option.conflicts([...conflicts]);
  if (entry.required) option.makeOptionMandatory();
  return option;
}
