/** The codes of a WebSocket's end that the server gives or tells of (RFC 6455, section 7.4.1). */
export const CLOSE_CODES = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  /** The peer's close frame had no code. Never sent. */
  none: 1005,
  /** The connection ended without a close frame. Never sent. */
  lost: 1006,
  invalidText: 1007,
  policyViolation: 1008,
  tooBig: 1009,
} as const;

/** Whether a peer may send this code: those of the protocol's registry, and 3000 to 4999 for whom it may concern. */
export function isSendableCode(code: number): boolean {
  return (
    (code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006) ||
    (code >= 3000 && code <= 4999)
  );
}
