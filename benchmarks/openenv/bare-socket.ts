import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const TEXT = 0x1;
const CLOSE = 0x8;
const PING = 0x9;
const PONG = 0xa;

/** A frame ready to be sent as often as one likes: masking it anew each time would measure the load. */
export function clientFrame(text: string): Buffer {
  return frame(TEXT, Buffer.from(text));
}

const BUFFER_BYTES = 4096;
const NOTHING: Buffer = Buffer.alloc(0);
const HEAD_END = '\r\n\r\n';

/**
 * A WebSocket that costs as little as can be, so that a load of them keeps up with the server that is measured. Takes
 * unfragmented text frames; fails on anything else that is no ping.
 */
export class BareSocket {
  readonly #socket: Socket;
  /** The part that has arrived of a message. */
  #rest = NOTHING;
  #opened: (() => void) | null = null;
  /** Called with the text of each message, which stays valid only during the call. */
  onMessage: (payload: Buffer) => void = () => {};

  static async open(url: string): Promise<BareSocket> {
    const { hostname, port } = new URL(url);
    const socket = new BareSocket(hostname, Number(port));
    await socket.#handshake(`${hostname}:${port}`);
    return socket;
  }

  private constructor(host: string, port: number) {
    this.#socket = connect({
      host,
      port,
      noDelay: true,
      onread: {
        buffer: Buffer.alloc(BUFFER_BYTES),
        callback: (length, buffer) => {
          this.#receive(buffer.subarray(0, length) as Buffer);
          return true;
        },
      },
    });
  }

  send(frame: Buffer): void {
    this.#socket.write(frame);
  }

  /** Sends a frame and waits for the text of the next message. */
  ask(frame: Buffer): Promise<string> {
    return new Promise((resolve) => {
      this.onMessage = (payload) => resolve(payload.toString());
      this.send(frame);
    });
  }

  /** Ends the connection as the protocol wants it. */
  async close(): Promise<void> {
    this.send(frame(CLOSE, Buffer.from([1000 >> 8, 1000 & 0xff])));
    this.#socket.end();
    if (!this.#socket.closed) await once(this.#socket, 'close');
  }

  async #handshake(host: string): Promise<void> {
    await once(this.#socket, 'connect');
    const key = randomBytes(16).toString('base64');
    this.#socket.write(
      `GET /ws HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13${HEAD_END}`,
    );
    await new Promise<void>((resolve) => {
      this.#opened = resolve;
    });
  }

  #receive(chunk: Buffer): void {
    let data = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    if (this.#opened) {
      const head = data.indexOf(HEAD_END);
      if (head >= 0) {
        const status = data.toString('latin1', 0, data.indexOf('\r\n'));
        if (!status.startsWith('HTTP/1.1 101')) throw new Error(`The server answered ${status}`);
        this.#opened();
        this.#opened = null;
        data = data.subarray(head + HEAD_END.length);
      }
    }
    while (this.#opened === null) {
      const header = data.length < 2 ? 0 : data[1] < 126 ? 2 : data[1] === 126 ? 4 : 10;
      if (header === 0 || data.length < header) break;
      const length =
        header === 2 ? data[1] : header === 4 ? data.readUInt16BE(2) : Number(data.readBigUInt64BE(2));
      if (data.length < header + length) break;
      this.#take(data[0], data.subarray(header, header + length));
      data = data.subarray(header + length);
    }
    // The buffer is filled anew by what comes next.
    this.#rest = data.length === 0 ? NOTHING : Buffer.from(data);
  }

  #pong(payload: Buffer): void {
    if (!this.#socket.writableEnded) this.send(frame(PONG, payload));
  }

  #take(first: number, payload: Buffer): void {
    const opcode = first & 0x0f;
    if (opcode === TEXT && (first & 0x80) !== 0) this.onMessage(payload);
    else if (opcode === PING) this.#pong(payload);
    else if (opcode !== CLOSE) throw new Error(`Expected a text frame, got one that begins with ${first}`);
  }
}

/** With a mask of zeros, which leaves the payload as it is. */
function frame(opcode: number, payload: Buffer): Buffer {
  if (payload.length >= 65_536) throw new Error('Expected a frame of less than 64 KiB');
  const head =
    payload.length < 126
      ? Buffer.from([0x80 | opcode, 0x80 | payload.length])
      : Buffer.from([0x80 | opcode, 0x80 | 126, payload.length >> 8, payload.length & 0xff]);
  return Buffer.concat([head, Buffer.alloc(4), payload]);
}
