/** An instruction of a Dockerfile. */
export interface Instruction {
  readonly name: string;
  /** The text behind the name, with `ARG`s filled in. */
  readonly rest: string;
}

/** From one `FROM` to the next. */
export interface Stage {
  /** Its image, or the stage that it goes on from. */
  readonly base: string;
  readonly alias: string | undefined;
  readonly instructions: readonly Instruction[];
}

/** Reads a Dockerfile of one instruction a line, as ours is. `args` win over the defaults of its `ARG`s. */
export function readStages(text: string, args: Readonly<Record<string, string>> = {}): Stage[] {
  const values = new Map<string, string>();
  const stages: { base: string; alias: string | undefined; instructions: Instruction[] }[] = [];
  for (const line of text.split('\n')) {
    const [, name, raw] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    if (!name || raw === undefined) {
      if (line.trim() !== '' && !line.startsWith('#'))
        throw new Error(`Expected an instruction, got \`${line}\``);
      continue;
    }
    const rest = name === 'CMD' || name === 'HEALTHCHECK' ? raw : filledIn(raw, values);
    if (name === 'ARG') {
      const [key, value] = rest.split('=') as [string, string | undefined];
      if (value !== undefined) values.set(key, args[key] ?? value);
    } else if (name === 'FROM') {
      const [base, , alias] = rest.split(/\s+/) as [string, string?, string?];
      stages.push({ base, alias, instructions: [] });
    } else {
      stages.at(-1)?.instructions.push({ name, rest });
    }
  }
  return stages;
}

/** The list of `CMD ["node", "main.ts"]`. */
export function commandOf(stage: Stage): string[] {
  const command = stage.instructions.findLast(({ name }) => name === 'CMD')?.rest;
  if (!command) throw new Error('Expected a CMD in the last stage');
  return JSON.parse(command);
}

/** The variables that the container starts with. */
export function variablesOf(stage: Stage): Record<string, string> {
  const settings = stage.instructions.filter(({ name }) => name === 'ENV');
  return Object.fromEntries(settings.map(({ rest }) => rest.split('=') as [string, string]));
}

/** Sources and target of a `COPY`, and the stage from which. */
export function copyOf({ rest }: Instruction): {
  from: string | undefined;
  sources: string[];
  target: string;
} {
  const words = rest.split(/\s+/);
  const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length);
  const paths = words.filter((word) => !word.startsWith('--'));
  return { from, sources: paths.slice(0, -1), target: paths.at(-1)! };
}

function filledIn(text: string, values: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\$\{(\w+)\}/g, (_, key: string) => values.get(key) ?? '');
}
