import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { duplexPair } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { type WebSocket, WebSocketServer } from 'ws';
import { FrameError } from './frame-error.ts';
import { FrameReader } from './frame-reader.ts';
import { type ClientFrame, maskedFrame } from './masked-frame.fixture.ts';
import { OPCODES } from './opcode.ts';

const MAX_BYTES = 200;
/** What the end of reading is called when the stream ends in good order. */
const NO_END = 0;

type Event = readonly [kind: 'text' | 'binary' | 'ping' | 'pong' | 'close', value: string | number];

/** What a reader tells of some chunks, and the code that it closes with. */
function read(chunks: readonly Buffer[], maxBytes = MAX_BYTES): { events: Event[]; closedWith: number } {
  const events: Event[] = [];
  let closedWith = NO_END;
  const reader = new FrameReader(
    {
      onMessage: (data) =>
        events.push(typeof data === 'string' ? ['text', data] : ['binary', data.toString('hex')]),
      onPing: (payload) => events.push(['ping', payload.toString('hex')]),
      onPong: () => events.push(['pong', '']),
      onClose: (code) => {
        closedWith = code;
      },
    },
    maxBytes,
  );
  try {
    // What is read is the reader's own: a copy each, as the network gives it.
    for (const chunk of chunks) reader.read(Buffer.from(chunk));
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
    closedWith = error.closeCode;
  }
  return { events, closedWith };
}

/** What `ws` makes of the same bytes. */
async function readByWs(bytes: Buffer): Promise<{ events: Event[]; closedWith: number }> {
  const [serverSide, clientSide] = duplexPair();
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_BYTES,
    perMessageDeflate: false,
    autoPong: false,
  });
  const request = {
    method: 'GET',
    headers: {
      upgrade: 'websocket',
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
      'sec-websocket-version': '13',
    },
  };
  const socket = await new Promise<WebSocket>((resolve) => {
    server.handleUpgrade(request as unknown as IncomingMessage, serverSide, Buffer.alloc(0), resolve);
  });
  const events: Event[] = [];
  let failure: number | undefined;
  socket.on('message', (data: Buffer, isBinary) => {
    if (socket.readyState === socket.OPEN)
      events.push(isBinary ? ['binary', data.toString('hex')] : ['text', data.toString()]);
  });
  socket.on('ping', (payload) => events.push(['ping', payload.toString('hex')]));
  socket.on('pong', () => events.push(['pong', '']));
  socket.on('error', (error) => {
    failure = FAILURES[(error as { code?: string }).code ?? ''];
    assert.ok(failure, String(error));
  });
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  clientSide.resume();
  clientSide.end(bytes);
  const code = await closed;
  return { events, closedWith: failure ?? (code === 1006 ? NO_END : code) };
}

const FAILURES: Readonly<Record<string, number>> = {
  WS_ERR_EXPECTED_FIN: 1002,
  WS_ERR_EXPECTED_MASK: 1002,
  WS_ERR_INVALID_CLOSE_CODE: 1002,
  WS_ERR_INVALID_CONTROL_PAYLOAD_LENGTH: 1002,
  WS_ERR_INVALID_OPCODE: 1002,
  WS_ERR_UNEXPECTED_RSV_1: 1002,
  WS_ERR_UNEXPECTED_RSV_2_3: 1002,
  WS_ERR_INVALID_UTF8: 1007,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 1009,
};

const mask = fc.uint8Array({ minLength: 4, maxLength: 4 });

/** The frames of a message, cut into fragments with pings between them, and what a reader tells of them. */
const message = fc
  .record({
    text: fc.option(fc.string({ unit: 'grapheme', maxLength: 40 })),
    bytes: fc.uint8Array({ maxLength: 150 }),
    cuts: fc.array(fc.nat(150), { maxLength: 3 }),
    hasPings: fc.boolean(),
    mask,
  })
  .map(({ text, bytes, cuts, hasPings, mask }) => {
    const payload = text === null ? bytes : Buffer.from(text);
    const places = [
      0,
      ...cuts.map((cut) => Math.min(cut, payload.length)).toSorted((a, b) => a - b),
      payload.length,
    ];
    const frames: ClientFrame[] = [];
    const events: Event[] = [];
    for (let index = 1; index < places.length; index++) {
      const opcode = index > 1 ? OPCODES.continuation : text === null ? OPCODES.binary : OPCODES.text;
      const isFinal = index === places.length - 1;
      frames.push({ opcode, payload: payload.subarray(places[index - 1], places[index]), isFinal, mask });
      if (hasPings && !isFinal) {
        frames.push({ opcode: OPCODES.ping, payload: Uint8Array.of(index), mask });
        events.push(['ping', Buffer.of(index).toString('hex')]);
      }
    }
    events.push(text === null ? ['binary', Buffer.from(bytes).toString('hex')] : ['text', text]);
    return { bytes: Buffer.concat(frames.map(maskedFrame)), events };
  });

function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
}

test('messages are read whole and in order, however fragments and the network cut them', () => {
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 6 }),
      fc.array(fc.nat(), { maxLength: 8 }),
      (messages, cuts) => {
        const bytes = Buffer.concat(messages.map((one) => one.bytes));
        const { events, closedWith } = read(cutAt(bytes, cuts));
        assert.deepEqual(
          events,
          messages.flatMap((one) => one.events),
        );
        assert.equal(closedWith, NO_END);
      },
    ),
    { numRuns: 500 },
  );
});

test('a stream that comes byte by byte is read as one that comes at once', () => {
  const payload = Buffer.from('€'.repeat(30_000));
  const bytes = Buffer.concat([
    maskedFrame({ opcode: OPCODES.text, payload, mask: Uint8Array.of(1, 2, 3, 4) }),
    maskedFrame({ opcode: OPCODES.close, payload: Uint8Array.of(0x03, 0xe9) }),
  ]);
  const single = read(
    Array.from(bytes, (byte) => Buffer.of(byte)),
    payload.length,
  );
  assert.deepEqual(single, read([bytes], payload.length));
  assert.deepEqual(single, { events: [['text', payload.toString()]], closedWith: 1001 });
});

test('a message keeps its bytes when the next ones come', () => {
  const kept: Buffer[] = [];
  const reader = new FrameReader(
    { onMessage: (data) => kept.push(data as Buffer), onPing: () => {}, onPong: () => {}, onClose: () => {} },
    MAX_BYTES,
  );
  const frames = Array.from({ length: 20 }, (_, index) =>
    maskedFrame({ opcode: OPCODES.binary, payload: new Uint8Array(7).fill(index) }),
  );
  for (const chunk of cutAt(
    Buffer.concat(frames),
    Array.from({ length: 40 }, (_, index) => index * 31),
  )) {
    reader.read(Buffer.from(chunk));
  }
  assert.deepEqual(
    kept.map((data) => [...data]),
    frames.map((_, index) => new Array(7).fill(index)),
  );
});

/** Frames that are almost right, and bytes that are none. */
const oddFrame = fc.oneof(
  { weight: 4, arbitrary: message.map(({ bytes }) => bytes) },
  {
    weight: 4,
    arbitrary: fc
      .record({
        opcode: fc.oneof(fc.constantFrom(...Object.values(OPCODES)), fc.nat(15)),
        payload: fc.oneof(
          fc.uint8Array({ maxLength: 130 }),
          fc.uint8Array({ minLength: 190, maxLength: 210 }),
          fc.constantFrom(
            ...[999, 1000, 1004, 1005, 1012, 1015, 2999, 3000, 5000].map((code) =>
              Buffer.of(code >> 8, code & 0xff),
            ),
          ),
        ),
        isFinal: fc.boolean(),
        mask,
      })
      .map(maskedFrame),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 20 }).map((array) => Buffer.from(array)) },
);

function closing(code: number, ...reason: readonly number[]): Buffer {
  return maskedFrame({ opcode: OPCODES.close, payload: Uint8Array.of(code >> 8, code & 0xff, ...reason) });
}

test('each mistake ends the reading with its code', () => {
  const empty = new Uint8Array();
  const text = (isFinal: boolean) =>
    maskedFrame({ opcode: OPCODES.text, payload: Uint8Array.of(0x31), isFinal });
  const cases: [mistake: string, bytes: Buffer, code: number][] = [
    ['a frame without a mask', Buffer.of(0x81, 0x01, 0x31), 1002],
    ['a reserved bit', Buffer.of(0xc1, 0x80, 0, 0, 0, 0), 1002],
    ['an unknown opcode', maskedFrame({ opcode: 3, payload: empty }), 1002],
    ['an unknown control opcode', maskedFrame({ opcode: 11, payload: empty }), 1002],
    ['a ping in fragments', maskedFrame({ opcode: OPCODES.ping, payload: empty, isFinal: false }), 1002],
    ['a long ping', maskedFrame({ opcode: OPCODES.ping, payload: new Uint8Array(126) }), 1002],
    ['half a close code', maskedFrame({ opcode: OPCODES.close, payload: Uint8Array.of(3) }), 1002],
    ['a reason that is no UTF-8', closing(1000, 0xff), 1007],
    ...[0, 999, 1004, 1005, 1006, 1015, 2999, 5000].map((code): [string, Buffer, number] => [
      `close code ${code}`,
      closing(code),
      1002,
    ]),
    ['a fragment of nothing', maskedFrame({ opcode: OPCODES.continuation, payload: empty }), 1002],
    ['a message inside another', Buffer.concat([text(false), text(true)]), 1002],
    ['text that is no UTF-8', maskedFrame({ opcode: OPCODES.text, payload: Uint8Array.of(0xc3) }), 1007],
    [
      'a message over the limit',
      maskedFrame({ opcode: OPCODES.text, payload: new Uint8Array(MAX_BYTES + 1) }),
      1009,
    ],
    [
      'fragments over the limit',
      Buffer.concat([
        text(false),
        maskedFrame({ opcode: OPCODES.continuation, payload: new Uint8Array(MAX_BYTES) }),
      ]),
      1009,
    ],
    ['a length beyond all numbers', Buffer.of(0x82, 0xff, ...new Array(12).fill(0xff)), 1009],
  ];
  const message = text(true);
  for (const [mistake, bytes, code] of cases) {
    assert.deepEqual(read([bytes, message]), { events: [], closedWith: code }, mistake);
  }
});

test('every code that a peer may give ends the reading with it, and what follows is dropped', () => {
  const message = maskedFrame({ opcode: OPCODES.text, payload: Uint8Array.of(0x31) });
  for (const code of [1000, 1003, 1007, 1014, 3000, 4999]) {
    const bytes = Buffer.concat([message, closing(code, 0x31), message]);
    assert.deepEqual(read([bytes, message]), { events: [['text', '1']], closedWith: code });
  }
  const bare = maskedFrame({ opcode: OPCODES.close, payload: new Uint8Array() });
  assert.deepEqual(read([bare, message]), { events: [], closedWith: 1005 });
});

test('whatever comes, the messages and the code of the end are those of ws', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(oddFrame, { maxLength: 5 }),
      fc.array(fc.nat(), { maxLength: 4 }),
      async (frames, cuts) => {
        const bytes = Buffer.concat(frames);
        assert.deepEqual(read(cutAt(bytes, cuts)), await readByWs(bytes));
      },
    ),
    { numRuns: 600 },
  );
});
