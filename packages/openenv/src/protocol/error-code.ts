/** The codes of a WebSocket `error` message, as OpenEnv defines them. */
export const ERROR_CODES = [
  'INVALID_JSON',
  'UNKNOWN_TYPE',
  'VALIDATION_ERROR',
  'EXECUTION_ERROR',
  'CAPACITY_REACHED',
  'FACTORY_ERROR',
  'SESSION_ERROR',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** The reasons that the server itself gives beside `EXECUTION_ERROR`; an environment adds its own. */
export const SESSION_ERROR_REASONS = ['NOT_RESET', 'EPISODE_OVER'] as const;
export type SessionErrorReason = (typeof SESSION_ERROR_REASONS)[number];
