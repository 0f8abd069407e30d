interface TestPlace {
  readonly name: string;
  readonly line: number;
  readonly column: number;
}

/** What a worker tells of the test file that it runs; `done` is the last. */
export type WorkerMessage =
  | { readonly type: 'output'; readonly text: string }
  | ({ readonly type: 'begin' } & TestPlace)
  | TestEnd
  | FileEnd
  /** All tests of the file were counted. */
  | { readonly type: 'whole' }
  | { readonly type: 'done' };

/** A test or a suite has ended. */
export interface TestEnd extends TestPlace {
  readonly type: 'test';
  readonly isSuite: boolean;
  /** Whether it was skipped, or is to do. */
  readonly isLeftOut: boolean;
  readonly passed: boolean;
  /** Node's word for the kind of failure. */
  readonly failureType?: string;
  /** What was thrown, for a person to read. */
  readonly error?: string;
}

/** The process of the file has ended. */
export interface FileEnd {
  readonly type: 'end';
  readonly passed: boolean;
  readonly failureType?: string;
  /** Its exit code or its signal. */
  readonly ending: string;
}
