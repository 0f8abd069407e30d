/** Every code of the agents, with the sentence of its message. */
const SENTENCES = {
  /** Settings of a language model that cannot work. Nothing was asked. */
  LLM_SETTINGS: ({ problem }: { problem: string }) => problem,
  /** Key, model or address is wrong. */
  LLM_REFUSED: ({ baseUrl, model, problem }: { baseUrl: string; model: string; problem: string }) =>
    `${baseUrl} refuses requests to \`${model}\`: ${problem}. Look at the key, the model and the address`,
  /** No answer to the very first question, or to several in a row. */
  LLM_UNREACHABLE: (fields: { baseUrl: string; model: string; silences: number; problem: string }) => {
    const times = fields.silences > 1 ? ` to ${fields.silences} questions in a row` : '';
    return `${fields.baseUrl} gave no answer of \`${fields.model}\`${times}: ${fields.problem}`;
  },
  /** No answer was a valid action. */
  LLM_NO_ACTION: ({ problem }: { problem: string }) => problem,
  /** A file that holds no tensors, or not those that its reader needs. */
  TENSOR_FILE: ({ problem }: { problem: string }) => problem,
  /** A file that holds no policy. */
  POLICY_FILE: ({ problem }: { problem: string }) => problem,
  /** A policy that was trained on something else. */
  POLICY_MISMATCH: ({ what, expected, got }: { what: string; expected: string; got: unknown }) =>
    `Expected a policy for the ${what} ${expected}, got ${got}: train it anew`,
  /** A policy for a task that is not known here, or is another one of the same id. */
  POLICY_TASK: ({ expected, got, remedy }: { expected: string; got: unknown; remedy?: string }) =>
    `Expected a policy for ${expected}, got ${got}${remedy === undefined ? '' : `: ${remedy}`}`,
  /** A stopped training that this version cannot go on with. */
  RUN_MISMATCH: ({ expected, got }: { expected: string; got: unknown }) =>
    `Expected a run ${expected}, got ${got}: train anew`,
  UNKNOWN_TASK: ({ known, got }: { known: readonly string[]; got: unknown }) =>
    `Expected a task named one of ${known.join(', ')}, got ${JSON.stringify(got)}`,
  UNKNOWN_POLICY: ({ known, got }: { known: readonly string[]; got: string }) =>
    `Expected a policy named one of ${known.join(', ')}, got ${JSON.stringify(got)}`,
  /** A policy that can be trained, and does not come with the package. */
  POLICY_NOT_SHIPPED: ({ problem }: { problem: string }) => problem,
  /** A policy that is to play another task than it was trained for. */
  OTHER_TASK: ({ trained, got }: { trained: string | number; got: unknown }) =>
    `Expected the task ${trained} that the policy was trained for, got ${got}`,
} as const;

export type AgentErrorCode = keyof typeof SENTENCES;

/** An error that the caller can correct, with a code and a sentence of the catalogue. */
export class AgentError<Code extends AgentErrorCode = AgentErrorCode> extends Error {
  override readonly name = 'AgentError';
  readonly isInputError = true;
  readonly code: Code;

  constructor(code: Code, fields: Parameters<(typeof SENTENCES)[Code]>[0], options?: ErrorOptions) {
    super((SENTENCES[code] as (fields: unknown) => string)(fields), options);
    this.code = code;
  }
}

/** @throws AgentError `POLICY_MISMATCH` when `got` is not `expected` */
export function requireSame(what: string, expected: string, got: unknown): void {
  if (got !== expected) throw new AgentError('POLICY_MISMATCH', { what, expected, got });
}

/** @throws AgentError `OTHER_TASK` when a policy that was trained for one task is to play another */
export function requireTask(trained: string | number, asked: string | number): void {
  if (String(asked) !== String(trained)) throw new AgentError('OTHER_TASK', { trained, got: asked });
}
