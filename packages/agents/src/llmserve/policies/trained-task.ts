/** Throws a `RangeError` when a policy that was trained for one task is to play another. */
export function requireTask(trained: string, asked: string | number): void {
  if (asked === trained) return;
  throw new RangeError(`Expected the task \`${trained}\` that the policy was trained for, got \`${asked}\``);
}
