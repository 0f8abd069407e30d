import { createHash } from 'node:crypto';
import { EnvironmentError } from '@servegym/openenv/definition';
import { findProfile, ProfileError } from '@servegym/profiles';
import { type EngineProfile, portableMath, type RandomStream } from '@servegym/simulator';
import { z } from 'zod';

/** Part of a task that all environments have. */
export interface KnownTask {
  readonly id: string | number;
}

/** Files of tasks of one's own. */
interface TaskFiles<Task> {
  readonly schema: z.ZodType<Task>;
  /** Field by which a task of this environment is told from those of others. */
  readonly mark: string;
}

/** The tasks that a process knows: those that come with an environment, and those of people who play their own. */
export class Tasks<Task extends KnownTask, Id extends string | number = Task['id']> {
  /** Those that there always are, by id, easiest first. */
  readonly shipped: Readonly<Record<Id, Task>>;
  readonly shippedIds: readonly Id[];
  readonly #own = new Map<string | number, Task>();
  readonly #files: TaskFiles<Task> | undefined;

  /** @param files absent where an environment takes no tasks of one's own */
  constructor(shipped: Readonly<Record<Id, Task>>, files?: TaskFiles<Task>) {
    this.shipped = shipped;
    this.shippedIds = Object.values<Task>(shipped).map(({ id }) => id as Id);
    this.#files = files;
  }

  /**
   * Makes a task known to this process: `reset({task_id})` plays it. One of the same id is replaced, but for those that
   * there always are.
   * @throws RangeError for an id that belongs to one of these
   */
  add(task: Task): void {
    if (!this.isOwn(task.id)) {
      throw new RangeError(`Expected a task with an id of its own, got \`${task.id}\`, which is taken`);
    }
    this.#own.set(task.id, task);
  }

  /** True unless this is the id of one of the tasks that there always are. */
  isOwn(id: string | number): boolean {
    return !Object.hasOwn(this.shipped, id);
  }

  /** The task of this id; `undefined` when there is none. */
  find(id: string | number): Task | undefined {
    return this.isOwn(id) ? this.#own.get(id) : this.shipped[id as Id];
  }

  /** Ids of the tasks: those that there always are, easiest first, then those that were added. */
  ids(): Task['id'][] {
    return this.all().map(({ id }) => id);
  }

  /** The tasks in the order of `ids`. */
  all(): Task[] {
    return [...Object.values<Task>(this.shipped), ...this.#own.values()];
  }

  /** True for what a file of a task of this environment holds, sound or not. */
  recognises(candidate: unknown): boolean {
    const mark = this.#files?.mark;
    return mark !== undefined && typeof candidate === 'object' && candidate !== null && mark in candidate;
  }

  /**
   * Reads a task of one's own.
   * @param source where it comes from, for the message
   * @throws EnvironmentError `INVALID_TASK` that lists what is wrong, field by field
   */
  parse(candidate: unknown, source: string): Task {
    const reading = this.#files?.schema.safeParse(candidate);
    if (reading?.success) return reading.data;
    const problems = (reading?.error.issues ?? []).map(
      ({ path, message }) => `${path.join('.') || 'task'}: ${message}`,
    );
    throw new EnvironmentError('INVALID_TASK', `${source} is no task: ${problems.join('; ')}`);
  }

  /** Part of an environment's version: a session on a task of one's own is not taken up on what its file has become. */
  versionMark(): string {
    if (this.#own.size === 0) return '';
    const tasks = JSON.stringify([...this.#own.values()]);
    return `+${createHash('sha256').update(tasks).digest('hex').slice(0, 12)}`;
  }
}

/** The same, to be read only. */
export type Immutable<Value> = Value extends object
  ? { readonly [Key in keyof Value]: Immutable<Value[Key]> }
  : Value;

/** Priority classes of requests, most urgent first. The index is the priority in the engine and at the gateway. */
export const REQUEST_CLASSES = ['interactive', 'batch', 'best_effort'] as const;

export const positive = z.number().positive().max(1e9);

/** Tokens or times that are log-normal, held within their bounds; `sigma` is the deviation of the logarithm. */
export const lengths = z
  .strictObject({
    median: positive,
    sigma: z.number().min(0).max(4),
    min: z.int().min(1).max(1_000_000),
    max: z.int().min(1).max(1_000_000),
  })
  .refine(({ min, max }) => min <= max, 'Expected min to be at most max');
export type LogNormal = Immutable<z.output<typeof lengths>>;

/** Names and length of a task, in each environment. */
export const taskHead = {
  id: z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, {
    error: 'Expected lower-case letters, digits, dashes and underscores, at most 64',
  }),
  name: z.string().min(1).max(200),
  difficulty: z.enum(['easy', 'medium', 'hard']).default('medium'),
  description: z.string().min(1).max(2000),
};

export type TaskHead = Immutable<{ [Name in keyof typeof taskHead]: z.output<(typeof taskHead)[Name]> }>;

/** The schema of the knobs that a task masks. */
export function maskedKnobs<Knob extends string>(knobs: readonly Knob[]) {
  return z
    .array(z.enum(knobs as readonly [Knob, ...Knob[]]))
    .min(1, 'Expected at least one knob; leave the field out where all are free')
    .refine((masked) => new Set(masked).size === masked.length, 'Expected each knob once')
    .refine(
      (masked) => new Set(masked).size < knobs.length,
      'Expected a knob to be left free: with all of them masked there is nothing to decide',
    )
    .optional();
}

type TaskCheck = z.core.ParsePayload<unknown>;

/** Notes what is wrong with a task. */
export function complain(
  { value, issues }: TaskCheck,
  path: readonly (string | number)[],
  message: string,
): void {
  issues.push({ code: 'custom', path: [...path], input: value, message });
}

/** Names in a message. */
export function nameList(names: readonly string[], otherwise: string): string {
  return names.length === 0 ? otherwise : `one of ${names.join(', ')}`;
}

/** Draws one of these. */
export function drawLogNormal(draws: RandomStream, { median, sigma, min, max }: LogNormal): number {
  return Math.min(max, Math.max(min, draws.lognormal(portableMath.log(median), sigma)));
}

/** The profile that a task names; `undefined` where there is none, which is noted. */
export function profileOf(
  check: TaskCheck,
  path: readonly string[],
  name: string,
): EngineProfile | undefined {
  try {
    return findProfile(name);
  } catch (error) {
    if (!(error instanceof ProfileError)) throw error;
    complain(check, path, error.message);
    return undefined;
  }
}
