import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '../json/read-json.ts';
import { at, type Check, CheckFailure, failed, notApplicable, PASSED, shown } from './check.ts';
import type { InspectionSocket } from './inspection-socket.ts';
import type { Subject } from './subject.ts';

/** A server that closes at once does so within this time, ms. */
const CLOSES_AT_ONCE_MS = 300;

/** Checks of a full server: its refusal, and its recovery. */
export const CAPACITY_CHECKS: readonly Check[] = [
  {
    id: 'capacity_refusal',
    description: 'A full server refuses a session with the error CAPACITY_REACHED and the numbers',
    required: false,
    run: (subject) =>
      whenFull(subject, async (refused) => {
        const reply = await refused.next();
        const { code, active_sessions: active, max_sessions: most } = (at(reply, 'data') ?? {}) as JsonObject;
        if (reply.type !== 'error' || code !== 'CAPACITY_REACHED') return failed(`got ${shown(reply)}`);
        if (typeof active !== 'number' || typeof most !== 'number') {
          return failed('the error has no active_sessions and max_sessions');
        }
        return { passed: true, details: `${active} of ${most} sessions` };
      }),
  },
  {
    id: 'capacity_refusal_readable',
    description: 'A refused client that sends before it reads can still read why',
    required: false,
    run: (subject) =>
      whenFull(subject, async (refused) => {
        await Promise.race([refused.closed, sleep(CLOSES_AT_ONCE_MS)]);
        return refused.isClosed
          ? failed('the connection is closed at once: such a client sees nothing but that')
          : PASSED;
      }),
  },
  {
    id: 'sessions_released',
    description: 'Clients that vanish without a word leave their places to others',
    required: true,
    run: async (subject) => {
      const sessions = await OpenSessions.open(subject);
      await sessions.vanish();
      if (!sessions.isFull) return notFull(subject);
      return subject.withSession(async () => PASSED);
    },
  },
];

/** Judges a socket that a full server has refused and that nothing was sent on. */
async function whenFull(
  subject: Subject,
  judge: (refused: InspectionSocket) => Promise<ReturnType<typeof failed>>,
) {
  const sessions = await OpenSessions.open(subject);
  try {
    if (!sessions.isFull) return notFull(subject);
    const refused = await subject.connect();
    try {
      return await judge(refused);
    } finally {
      await refused.close();
    }
  } finally {
    await sessions.close();
  }
}

function notFull({ options }: Subject) {
  return notApplicable(`the server has room for ${options.mostSessions} sessions; --sessions opens more`);
}

/** As many sessions as a server gives, up to a limit. */
class OpenSessions {
  readonly #sockets: InspectionSocket[] = [];
  isFull = false;

  static async open(subject: Subject): Promise<OpenSessions> {
    const sessions = new OpenSessions();
    try {
      while (sessions.#sockets.length < subject.options.mostSessions && !sessions.isFull) {
        const socket = await subject.connect();
        sessions.#sockets.push(socket);
        sessions.isFull = await isRefused(socket);
      }
    } catch (error) {
      await sessions.close();
      throw error;
    }
    return sessions;
  }

  async close(): Promise<void> {
    await Promise.all(this.#sockets.map((socket) => socket.close()));
  }

  async vanish(): Promise<void> {
    await Promise.all(this.#sockets.map((socket) => socket.vanish()));
  }
}

async function isRefused(socket: InspectionSocket): Promise<boolean> {
  try {
    return (await socket.ask({ type: 'state' })).type === 'error';
  } catch (error) {
    if (error instanceof CheckFailure && socket.isClosed) return true;
    throw error;
  }
}
