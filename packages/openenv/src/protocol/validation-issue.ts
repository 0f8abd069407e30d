/** One thing that is wrong with an input, in the words of pydantic, which OpenEnv clients expect. */
export interface ValidationIssue {
  /** Stable name of the rule, for instance `missing`, `extra_forbidden`, `less_than_equal`, `literal_error`. */
  readonly type: string;
  /** Path from the root of the input to the value. */
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  /** The value that was sent; for `missing` the object that lacks it. A long value is cut. */
  readonly input: unknown;
  /** The limits of the rule, for instance `{ "le": 512 }`. */
  readonly ctx?: Readonly<Record<string, unknown>>;
}
