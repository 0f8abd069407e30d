import { on } from 'node:events';
import { WebSocket } from 'ws';
import { z } from 'zod';
import type { Caller, StepResult } from '../protocol/definition.ts';
import { errorAnswer, errorCode, openEnvError } from '../protocol/errors.ts';
import type { ErrorData } from '../protocol/messages.ts';
import { isJsonObject, type JsonObject, type LimitedJsonReading } from '../protocol/read-json.ts';
import { declares, excerpt, invalidInput, readInput } from '../protocol/schemas.ts';
import { readClientJson } from '../sessions/off-loop.ts';
import type { Session } from '../sessions/session.ts';
import { whenDone } from '../sessions/turns.ts';
import type { ServerParts } from './create-server.ts';
import { type EnvironmentTools, listingsOf, toolCallResult } from './tools.ts';
import { vectorConversation } from './vector.ts';

/**
 * Speaks OpenEnv's session protocol on an accepted socket: one message out for each message in, in order.
 * @param onCloseMessage The client has sent `close`: it needs its session no more.
 */
export function serveSession(
  socket: WebSocket,
  session: Session,
  parts: ServerParts,
  caller: Caller,
  onCloseMessage: () => void,
): void {
  const { readAction, readResetOptions, jsonRpc, schemas, tools } = parts;
  /** Not where the environment's actions have a `type`. */
  const toolsAsSteps = !declares(schemas.action, 'type');
  const vector = vectorConversation(parts, caller.name);
  const tellError = (error: unknown) => {
    const data = errorData(error);
    parts.sessions.counts.countError(data.code);
    return errorText(data);
  };
  // A session that could not be kept must not be played on; the client can resume it.
  answerInOrder(socket, answer, tellError, () => session.failure !== null);
  socket.on('close', vector.close);

  /** The reply; `null` for `close`, which has none. */
  function answer(data: Buffer, isBinary: boolean): Reply | Promise<Reply> {
    return isBinary ? vector.stepBinary(data) : whenDone(readClientJson(data, caller.name), answerReading);
  }

  function answerReading(reading: LimitedJsonReading): Reply | Promise<Reply> {
    // A client that left while its message was read must not take slots that nobody gives back.
    if (caller.signal.aborted) return null;
    if (!reading.ok) throw openEnvError('INVALID_JSON', { problem: reading.message });
    const message = reading.value;
    if (isJsonObject(message)) return answerMessage(message);
    throw invalidInput('dict_type', [], 'Input should be an object with a `type`', message);
  }

  function answerMessage(message: JsonObject): Reply | Promise<Reply> {
    switch (message.type) {
      case 'step': {
        const payload = dataOf(message, WITH_DATA);
        if (toolsAsSteps && (payload.type === 'call_tool' || payload.type === 'list_tools')) {
          return toolStep(payload, session, tools, caller);
        }
        return whenDone(session.step(readAction(payload)), observationText);
      }
      case 'reset':
        return whenDone(session.reset(readResetOptions(dataOf(message, WITH_ANY_DATA))), observationText);
      case 'state':
        readInput(WITHOUT_DATA, message);
        return whenDone(session.state(), (state) => `{"type":"state","data":${JSON.stringify(state)}}`);
      case 'mcp':
        return jsonRpc
          .answer(dataOf(message, WITH_DATA), { session, caller })
          .then((response) => JSON.stringify({ type: 'mcp', data: response }));
      case 'vector_reset':
        return vector.reset(dataOf(message, WITH_DATA));
      case 'vector_step':
        return vector.step(dataOf(message, WITH_DATA));
      case 'close':
        readInput(WITHOUT_DATA, message);
        onCloseMessage();
        socket.close(1000);
        return null;
      default:
        throw openEnvError('UNKNOWN_TYPE', { type: String(excerpt(message.type ?? '')) });
    }
  }
}

const type = z.string();
const data = z.record(z.string(), z.unknown());
const WITH_DATA = z.strictObject({ type, data });
const WITH_ANY_DATA = z.strictObject({ type, data: data.optional() });
const WITHOUT_DATA = z.strictObject({ type });

/** As they were sent: zod would drop `__proto__`, which environments refuse. */
function dataOf(message: JsonObject, schema: z.ZodType<{ readonly data?: JsonObject }>): JsonObject {
  return readInput(schema, message).data === undefined ? {} : (message.data as JsonObject);
}

function observationText({ observation, reward, done, metadata }: StepResult): string {
  return `{"type":"observation","data":${JSON.stringify({ observation, reward, done, metadata })}}`;
}

/** Tools for clients before OpenEnv 0.4, which call them by actions of a reserved `type`. */
async function toolStep(payload: JsonObject, session: Session, tools: EnvironmentTools, caller: Caller) {
  const reply = (observation: object) => observationText({ observation, reward: null, done: false });
  if (payload.type === 'list_tools') return reply({ tools: listingsOf(tools) });
  const name = String(payload.tool_name ?? '');
  const failed = (type: string, message: string) =>
    reply({ tool_name: name, result: null, error: { error_type: type, message } });
  const tool = tools.get(name);
  if (!tool) return failed('tool_not_found', `Unknown tool: '${name.slice(0, 100)}'`);
  try {
    const value = await tool.call(session, payload.arguments ?? {}, caller);
    return reply({ tool_name: name, result: toolCallResult(value), error: null });
  } catch (error) {
    const type = errorCode(error) === 'VALIDATION_ERROR' ? 'invalid_args' : 'execution_error';
    return failed(type, (error as Error).message);
  }
}

export function errorData(error: unknown): ErrorData {
  const { webSocket: code, message, issues, details } = errorAnswer(error);
  return code === 'VALIDATION_ERROR'
    ? { message: `Invalid message: ${message}`, code, errors: issues }
    : { message, code, ...details };
}

export function errorText(data: ErrorData): string {
  return JSON.stringify({ type: 'error', data });
}

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
 * takes time; with what `tellError` says where one is thrown. When `isOver` says so after a reply, the socket is closed. A
 * client that sends faster than it is answered is slowed down by TCP; one that does not read is dropped in the end.
 */
export function answerInOrder(
  socket: WebSocket,
  answer: (data: Buffer, isBinary: boolean) => Reply | Promise<Reply>,
  tellError: (error: unknown) => Reply = () => null,
  isOver: () => boolean = () => false,
): void {
  const limits = { close: ['close'], highWaterMark: MAX_WAITING, lowWaterMark: 1 };
  const messages = on(socket, 'message', limits);
  const answerAll = async () => {
    for await (const [data, isBinary] of messages) {
      if (socket.readyState !== WebSocket.OPEN) return;
      let reply: Reply | Promise<Reply>;
      try {
        reply = answer(data, isBinary);
        if (reply instanceof Promise) reply = await reply;
      } catch (error) {
        reply = tellError(error);
      }
      if (reply === null || socket.readyState !== WebSocket.OPEN) continue;
      if (socket.bufferedAmount < MAX_UNREAD) socket.send(reply);
      else await sendSlowly(socket, reply);
      if (isOver()) socket.close(1000);
    }
  };
  // The connection has failed.
  answerAll().catch(() => socket.terminate());
}

/** Sends a reply to a client that has much left to read, and reads no further until it has. */
async function sendSlowly(socket: WebSocket, reply: string | Uint8Array): Promise<void> {
  const { isPaused } = socket;
  socket.pause();
  const timer = setTimeout(() => socket.terminate(), UNREAD_LIMIT_MS).unref();
  await new Promise<unknown>((sent) => socket.send(reply, sent));
  clearTimeout(timer);
  if (!isPaused) socket.resume();
}
