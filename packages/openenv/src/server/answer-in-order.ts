import { WebSocket } from 'ws';

/** A client may send this many messages ahead of the replies before its socket is no longer read. */
const MAX_WAITING = 64;
/** A client that lets this much pile up unread is not served further until it has read, bytes. */
const MAX_UNREAD = 4 * 1024 * 1024;
/** A client that does not read for this long is dropped, ms. */
const UNREAD_LIMIT_MS = 60_000;

/** Text, bytes, or no reply. */
export type Reply = string | Uint8Array | null;

/**
 * Answers the messages of a socket one after another, so that replies keep the order of requests even when an answer
 * takes time. When `isOver` says so after a reply, the socket is closed. A client that sends faster than it is answered
 * is slowed down by TCP; one that does not read is dropped in the end.
 */
export function answerInOrder(
  socket: WebSocket,
  answer: (data: string | Buffer) => Reply | Promise<Reply>,
  isOver: () => boolean = () => false,
): void {
  const waiting: (string | Buffer)[] = [];
  let busy = false;

  socket.on('message', (bytes: Buffer, isBinary) => {
    const data = isBinary ? bytes : bytes.toString();
    if (busy) {
      waiting.push(data);
      if (waiting.length >= MAX_WAITING) socket.pause();
    } else {
      take(data);
    }
  });
  socket.on('close', () => {
    waiting.length = 0;
  });

  function take(data: string | Buffer): void {
    if (socket.readyState !== WebSocket.OPEN) return;
    const reply = answer(data);
    if (reply instanceof Promise) {
      busy = true;
      void reply.then(finish);
    } else if (reply !== null) {
      send(reply);
    }
  }

  function finish(reply: Reply): void {
    busy = false;
    if (reply !== null) send(reply);
    next();
  }

  function next(): void {
    while (!busy && waiting.length > 0) take(waiting.shift()!);
    if (socket.isPaused && waiting.length === 0 && !busy) socket.resume();
  }

  function send(reply: string | Uint8Array): void {
    if (socket.readyState !== WebSocket.OPEN) return;
    if (socket.bufferedAmount < MAX_UNREAD) {
      socket.send(reply);
      if (isOver()) socket.close(1000);
      return;
    }
    busy = true;
    socket.pause();
    const timer = setTimeout(() => socket.terminate(), UNREAD_LIMIT_MS).unref();
    socket.send(reply, () => {
      clearTimeout(timer);
      busy = false;
      next();
    });
  }
}
