/** A policy that tells why it chose its last action. */
export interface Explaining {
  explain(): unknown;
}

export function explains(policy: object): policy is Explaining {
  return 'explain' in policy && typeof policy.explain === 'function';
}
