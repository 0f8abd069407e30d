/** What the address bar remembers: which episode to play, and who plays it. */
export interface Choices {
  readonly task?: string;
  readonly seed?: number;
  readonly policy?: string;
}

/** The largest seed that every JSON reader keeps exact. */
export const LARGEST_SEED = Number.MAX_SAFE_INTEGER;

/** Reads the query of an address; what is missing or malformed is absent. */
export function readChoices(query: string): Choices {
  const parameters = new URLSearchParams(query);
  const seed = parameters.get('seed') ?? '';
  return {
    task: parameters.get('task') ?? undefined,
    seed: /^\d{1,16}$/.test(seed) && Number(seed) <= LARGEST_SEED ? Number(seed) : undefined,
    policy: parameters.get('policy') ?? undefined,
  };
}

/** The query that `readChoices` reads back. */
export function writeChoices(choices: Choices): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(choices))
    if (value !== undefined) parameters.set(name, String(value));
  return `?${parameters}`;
}
