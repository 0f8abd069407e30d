import { createHash } from 'node:crypto';

/** The tasks that a process knows: those that come with an environment, and those of people who play their own. */
export class TaskRegistry<Task extends { readonly id: string }> {
  readonly #shipped: Readonly<Record<string, Task>>;
  readonly #own = new Map<string, Task>();

  constructor(shipped: Readonly<Record<string, Task>>) {
    this.#shipped = shipped;
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
  isOwn(id: string): boolean {
    return !Object.hasOwn(this.#shipped, id);
  }

  /** The task of this id; `undefined` when there is none. */
  find(id: string): Task | undefined {
    return this.isOwn(id) ? this.#own.get(id) : this.#shipped[id];
  }

  /** Ids of the tasks: those that there always are, easiest first, then those that were added. */
  ids(): string[] {
    return [...Object.keys(this.#shipped), ...this.#own.keys()];
  }

  /** Part of an environment's version: a session on a task of one's own is not taken up on what its file has become. */
  versionMark(): string {
    if (this.#own.size === 0) return '';
    const tasks = JSON.stringify([...this.#own.values()]);
    return `+${createHash('sha256').update(tasks).digest('hex').slice(0, 12)}`;
  }
}
