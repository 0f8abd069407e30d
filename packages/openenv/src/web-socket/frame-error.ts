/** A frame that breaks the WebSocket protocol (RFC 6455), or a limit of the server. */
export class FrameError extends Error {
  /** What the socket is to be closed with. */
  readonly closeCode: number;

  constructor(closeCode: number, message: string) {
    super(message);
    this.closeCode = closeCode;
  }
}
