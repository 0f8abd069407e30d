import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import { answerInOrder, type Reply } from './answer-in-order.ts';

/** A socket whose client reads nothing until it is told to. */
function unreadSocket(bufferedAmount = 0) {
  const sent: { reply: Reply; onSent: (() => void) | undefined }[] = [];
  const socket = Object.assign(new EventEmitter(), {
    readyState: 1,
    isPaused: false,
    isTerminated: false,
    bufferedAmount,
    pause() {
      socket.isPaused = true;
    },
    resume() {
      socket.isPaused = false;
    },
    send(reply: Reply, onSent?: () => void) {
      sent.push({ reply, onSent });
    },
    closeCode: 0,
    close(code: number) {
      socket.closeCode = code;
    },
    terminate() {
      socket.isTerminated = true;
    },
  });
  return { socket, sent };
}

type Socket = Parameters<typeof answerInOrder>[0];

describe('a socket that is answered in order', () => {
  it('is read no further once many messages wait, and read on when all are answered', async () => {
    const { socket, sent } = unreadSocket();
    const { promise: answered, resolve: finish } = Promise.withResolvers<void>();
    answerInOrder(socket as unknown as Socket, (data) => answered.then(() => `${data}`));
    let messages = 0;
    while (!socket.isPaused && messages < 1000) socket.emit('message', `${messages++}`);
    assert.ok(messages > 8 && messages < 1000, `paused after ${messages}`);
    finish();
    // After all microtasks, and so after all answers.
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(
      sent.map(({ reply }) => reply),
      Array.from({ length: messages }, (_, i) => `${i}`),
    );
    assert.equal(socket.isPaused, false);
  });

  it('is not served while much of what it was sent lies unread, and served again once it has read', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { socket, sent } = unreadSocket(1e9);
    answerInOrder(socket as unknown as Socket, (data) => `${data}`);
    socket.emit('message', 'a');
    socket.emit('message', 'b');
    assert.deepEqual([sent.length, socket.isPaused], [1, true]);
    socket.bufferedAmount = 0;
    sent[0].onSent!();
    assert.deepEqual([sent.map(({ reply }) => reply), socket.isPaused], [['a', 'b'], false]);
    t.mock.timers.tick(60_000);
    assert.equal(socket.isTerminated, false);
  });

  it('is closed after the reply that ends its session', () => {
    const { socket, sent } = unreadSocket();
    let isOver = false;
    answerInOrder(
      socket as unknown as Socket,
      (data) => `${data}`,
      () => isOver,
    );
    socket.emit('message', 'a');
    assert.equal(socket.closeCode, 0);
    isOver = true;
    socket.emit('message', 'b');
    assert.deepEqual([sent.length, socket.closeCode], [2, 1000]);
  });

  it('is dropped when it reads nothing for a minute', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { socket, sent } = unreadSocket(1e9);
    answerInOrder(socket as unknown as Socket, (data) => `${data}`);
    socket.emit('message', 'a');
    t.mock.timers.tick(59_999);
    assert.equal(socket.isTerminated, false);
    t.mock.timers.tick(1);
    assert.equal(socket.isTerminated, true);
    assert.equal(sent.length, 1);
  });
});
