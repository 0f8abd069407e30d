import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { CLOSE_CODES } from './close-code.ts';
import { FrameError } from './frame-error.ts';
import { FrameReader } from './frame-reader.ts';
import { binaryHead, closeFrame, controlFrame, textFrame } from './frames.ts';
import { OPCODES } from './opcode.ts';

/** A peer has this long to answer a close frame, and to hang up, before the connection is dropped, ms. */
const CLOSE_TIMEOUT_MS = 30_000;
/** A peer that pings and lets more pongs than this pile up unread is dropped. */
const MOST_PONGS_UNREAD = 60;

interface Events {
  /** Text as a string, binary as bytes. */
  message: [data: string | Buffer];
  pong: [];
  /** The connection is gone. The peer's code; 1005 when it gave none, 1006 when it said no goodbye. */
  close: [code: number];
}

/** The server's end of a WebSocket whose handshake is done. */
export class ServerWebSocket extends EventEmitter<Events> {
  readonly #socket: Socket;
  readonly #reader: FrameReader;
  #isOpen = true;
  #isClosed = false;
  #closeCode: number = CLOSE_CODES.lost;
  #closeTimer: NodeJS.Timeout | undefined;
  #pongsUnread = 0;

  /** @param head What has come after the handshake already. */
  constructor(socket: Socket, head: Buffer, maxMessageBytes: number) {
    super();
    this.#socket = socket;
    this.#reader = new FrameReader(
      {
        onMessage: (data) => {
          if (this.#isOpen) this.emit('message', data);
        },
        onPing: (payload) => this.#pong(payload),
        onPong: () => void this.emit('pong'),
        onClose: (code) => this.#takeLeave(code),
      },
      maxMessageBytes,
    );
    if (head.length > 0) socket.unshift(head);
    socket.setTimeout(0);
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('end', () => this.#hangUp());
    socket.on('close', () => this.#end());
    socket.on('error', ignore);
  }

  /** Whether messages can still be sent. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Whether the connection is gone. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether it is not being read. */
  get isPaused(): boolean {
    return this.#socket.isPaused();
  }

  /** Bytes that the peer has not taken yet. */
  get bufferedAmount(): number {
    return this.#socket.writableLength;
  }

  /** Sends a message; does nothing once the socket is closing. `onSent` is called when the system has taken it. */
  send(data: string | Uint8Array, onSent?: () => void): void {
    if (!this.#isOpen) return;
    const socket = this.#socket;
    if (typeof data !== 'string') {
      socket.cork();
      socket.write(binaryHead(data.length));
      socket.write(data, onSent);
      socket.uncork();
      return;
    }
    const frame = textFrame(data);
    if (typeof frame === 'string') socket.write(frame, 'latin1', onSent);
    else socket.write(frame, onSent);
  }

  ping(): void {
    if (this.#isOpen) this.#socket.write(controlFrame(OPCODES.ping));
  }

  /** Stops reading. Messages that have come already may still be given. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Says goodbye and waits for the peer's. */
  close(code: number, reason = ''): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#socket.write(closeFrame(code, reason));
    this.#limitClosing();
  }

  /** Drops the connection. */
  terminate(): void {
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    try {
      this.#reader.read(chunk);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.close(error.closeCode);
      this.#hangUp();
    }
  }

  /** The peer has said goodbye, or answered ours. */
  #takeLeave(code: number): void {
    this.#closeCode = code;
    this.close(code);
    this.#hangUp();
  }

  /** Nothing more is sent; the connection is gone once the peer has hung up too. */
  #hangUp(): void {
    this.#isOpen = false;
    // To end what has ended makes an error each time, which costs more than all else here.
    if (!this.#socket.writableEnded) this.#socket.end();
    // What is left is read, so that the end of it can be seen.
    this.#socket.resume();
    this.#limitClosing();
  }

  #limitClosing(): void {
    this.#closeTimer ??= setTimeout(() => this.terminate(), CLOSE_TIMEOUT_MS).unref();
  }

  #pong(payload: Buffer): void {
    if (!this.#isOpen) return;
    if (++this.#pongsUnread > MOST_PONGS_UNREAD) this.terminate();
    else this.#socket.write(controlFrame(OPCODES.pong, payload), () => this.#pongsUnread--);
  }

  #end(): void {
    this.#isOpen = false;
    this.#isClosed = true;
    clearTimeout(this.#closeTimer);
    this.emit('close', this.#closeCode);
  }
}

/** An error of the connection is followed by its close. */
function ignore(): void {}
