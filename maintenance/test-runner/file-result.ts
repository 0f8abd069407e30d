import type { FileEnd, TestEnd, WorkerMessage } from './worker-message.ts';

/** What came of one test file, gathered from the messages of the worker that runs it. */
export class FileResult {
  readonly name: string;
  passed = 0;
  /** What went wrong, each with a title and, where there is one, the error as text. */
  readonly failures: { readonly title: string; readonly error?: string }[] = [];
  /** What the file wrote. */
  output = '';
  seconds = 0;
  /** Tests that failed only because a test inside them did. */
  #failedParents = 0;
  /** The titles of the tests that have begun and not ended. */
  readonly unfinished = new Set<string>();
  #isWhole = false;

  /** @param name the file's path, for a person to read */
  constructor(name: string) {
    this.name = name;
  }

  get failed(): number {
    return this.failures.length + this.#failedParents;
  }

  /** Takes in one message of the worker. */
  add(message: WorkerMessage): void {
    if (message.type === 'output') this.output += message.text;
    else if (message.type === 'begin') this.unfinished.add(this.#titleOf(message));
    else if (message.type === 'test') this.#addTest(message);
    else if (message.type === 'end') this.#addEnd(message);
    else if (message.type === 'whole') this.#isWhole = true;
  }

  /** The file has ended by itself; where nothing has failed, all its tests must have ended, too. */
  close(): void {
    if (!this.#isWhole && this.failed === 0) this.#fail('ended before its tests did, or has none');
  }

  /** The file was stopped before its end. */
  abort(why: string): void {
    this.#fail(why);
    for (const title of this.unfinished) this.failures.push({ title: `${title} did not end` });
  }

  #addTest(test: TestEnd): void {
    const title = this.#titleOf(test);
    this.unfinished.delete(title);
    if (test.isLeftOut) this.failures.push({ title: `${title} is skipped or to do` });
    else if (test.passed) this.passed += test.isSuite ? 0 : 1;
    else if (test.failureType === 'cancelledByParent')
      this.failures.push({ title: `${title} was cancelled` });
    else if (test.failureType !== 'subtestsFailed') this.failures.push({ title, error: test.error });
    else this.#failedParents += test.isSuite ? 0 : 1;
  }

  #addEnd({ passed, failureType, ending }: FileEnd): void {
    if (!passed && failureType !== 'subtestsFailed') this.#fail(`ended with ${ending}`);
  }

  #fail(what: string): void {
    this.failures.push({ title: `${this.name} ${what}` });
  }

  #titleOf({ name, line, column }: { name: string; line: number; column: number }): string {
    return `${name}  (${this.name}:${line}:${column})`;
  }
}
