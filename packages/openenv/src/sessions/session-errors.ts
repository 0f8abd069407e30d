/** No session can be opened: every slot is taken by a session that may not be evicted. */
export class SessionCapacityError extends Error {
  override readonly name = 'SessionCapacityError';
  readonly activeSessions: number;
  readonly maxSessions: number;
  constructor(activeSessions: number, maxSessions: number) {
    super(
      `Server at capacity: ${activeSessions}/${maxSessions} sessions active. Cannot accept new connections.`,
    );
    this.activeSessions = activeSessions;
    this.maxSessions = maxSessions;
  }
}

/** `create()` of the environment's definition threw. */
export class EnvironmentFactoryError extends Error {
  override readonly name = 'EnvironmentFactoryError';
  readonly factoryName: string;
  constructor(factoryName: string, cause: unknown) {
    super(`Environment factory '${factoryName}' failed to create instance.`, { cause });
    this.factoryName = factoryName;
  }
}

/** No session has this id: it was never opened here, was closed, or was evicted. */
export class UnknownSessionError extends Error {
  override readonly name = 'UnknownSessionError';
  readonly sessionId: string;
  constructor(sessionId: string) {
    super(`Unknown session_id: ${sessionId.slice(0, 100)}. Open a session with a reset.`);
    this.sessionId = sessionId;
  }
}
