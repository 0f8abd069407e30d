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

/** No session has this id: it was never opened, was closed, or has rested longer than it is kept. */
export class UnknownSessionError extends Error {
  override readonly name = 'UnknownSessionError';
  readonly sessionId: string;
  constructor(sessionId: string) {
    super(`Unknown session_id: ${sessionId.slice(0, 100)}. Open a session with a reset.`);
    this.sessionId = sessionId;
  }
}

/** A session could not be written or read: the disk is full, the database is locked, the file is damaged. */
export class SessionStoreError extends Error {
  override readonly name = 'SessionStoreError';
  readonly code = 'STORE_ERROR';
}

/** A client keeps as much as it may; its older sessions are not old enough to be deleted. */
export class SessionQuotaError extends Error {
  override readonly name = 'SessionQuotaError';
  readonly code = 'STORE_QUOTA';
  constructor(quotaBytes: number) {
    super(
      `The session could not be saved: your sessions may hold ${quotaBytes} bytes in all. Close sessions, send smaller resets, or wait until older ones may be deleted.`,
    );
  }
}

/** A session was deleted while it was open: it rested, and the store needed its room. */
export class SessionDeletedError extends Error {
  override readonly name = 'SessionDeletedError';
  readonly code = 'SESSION_DELETED';
  constructor(sessionId: string) {
    super(`Session ${sessionId} was deleted from the store. Open another one.`);
  }
}

/** Entries of a kept session are missing or changed: what is left of it is not what was played. */
export class SessionDamagedError extends Error {
  override readonly name = 'SessionDamagedError';
  readonly code = 'SESSION_DAMAGED';
  constructor(sessionId: string, damage: string, options?: ErrorOptions) {
    super(`Session ${sessionId.slice(0, 100)} is damaged: ${damage} Reset it, or open another one.`, options);
  }
}

/** Another process has taken the session over; this one can play it no more. */
export class SessionTakenError extends Error {
  override readonly name = 'SessionTakenError';
  readonly code = 'SESSION_TAKEN';
  constructor(sessionId: string) {
    super(`Session ${sessionId} was resumed by another server. Resume it again to go on here.`);
  }
}

/** The server is about to stop and opens no more sessions. */
export class ServerDrainingError extends Error {
  override readonly name = 'ServerDrainingError';
  constructor() {
    super('The server is shutting down and opens no more sessions. Try again.');
  }
}

/** A kept session cannot be replayed: it was played on another environment, or replay fails. */
export class SessionReplayError extends Error {
  override readonly name = 'SessionReplayError';
}

export type StoredSessionError =
  | SessionStoreError
  | SessionQuotaError
  | SessionDeletedError
  | SessionDamagedError
  | SessionTakenError;

/** Whether a session could not be kept or found as it was. `code` tells why. */
export function isStoredSessionError(error: unknown): error is StoredSessionError {
  return (
    error instanceof SessionStoreError ||
    error instanceof SessionQuotaError ||
    error instanceof SessionDeletedError ||
    error instanceof SessionDamagedError ||
    error instanceof SessionTakenError
  );
}
