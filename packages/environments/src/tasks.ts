import { createHash } from 'node:crypto';

/** Part of a task that all environments have. */
export interface KnownTask {
  readonly id: string | number;
}

/** Reading of a task of one's own. */
export interface TaskReading<Task> {
  /** @param source where the candidate comes from, for the message @throws TaskError */
  parse(candidate: unknown, source: string): Task;
  /** Field by which a task of this environment is told from those of others. */
  readonly mark: string;
}

/** The tasks that a process knows: those that come with an environment, and those of people who play their own. */
export class Tasks<Task extends KnownTask, Id extends string | number = Task['id']> {
  /** Those that there always are, by id, easiest first. */
  readonly shipped: Readonly<Record<Id, Task>>;
  readonly shippedIds: readonly Id[];
  readonly #own = new Map<string | number, Task>();
  readonly #reading: TaskReading<Task> | undefined;

  /** @param reading absent where an environment takes no tasks of one's own */
  constructor(shipped: Readonly<Record<Id, Task>>, reading?: TaskReading<Task>) {
    this.shipped = shipped;
    this.shippedIds = Object.values<Task>(shipped).map(({ id }) => id as Id);
    this.#reading = reading;
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
    const mark = this.#reading?.mark;
    return mark !== undefined && typeof candidate === 'object' && candidate !== null && mark in candidate;
  }

  /**
   * Reads a task of one's own.
   * @param source where it comes from, for the message
   * @throws TaskError that lists what is wrong, field by field
   */
  parse(candidate: unknown, source: string): Task {
    if (this.#reading === undefined) throw new RangeError('Expected an environment that takes tasks');
    return this.#reading.parse(candidate, source);
  }

  /** Part of an environment's version: a session on a task of one's own is not taken up on what its file has become. */
  versionMark(): string {
    if (this.#own.size === 0) return '';
    const tasks = JSON.stringify([...this.#own.values()]);
    return `+${createHash('sha256').update(tasks).digest('hex').slice(0, 12)}`;
  }
}
