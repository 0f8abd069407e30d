import type { WebSocket } from 'ws';
import type { Caller, StepResult } from '../protocol/definition.ts';
import { errorAnswer, errorCode, OpenEnvError } from '../protocol/errors.ts';
import type { ErrorData } from '../protocol/messages.ts';
import { isJsonObject, type JsonObject, type LimitedJsonReading } from '../protocol/read-json.ts';
import { excerpt, InvalidInputError } from '../protocol/validation-issues.ts';
import type { Session } from '../sessions/session.ts';
import { readClientJson } from '../sessions/turns.ts';
import { answerInOrder, type Reply } from './answer-in-order.ts';
import type { JsonRpcEndpoint } from './json-rpc-endpoint.ts';
import { toolCallResult } from './tools.ts';
import { VectorConversation, type VectorParts } from './vector.ts';

export interface SessionSocketParts extends VectorParts {
  readonly jsonRpc: JsonRpcEndpoint;
  /** Accepts `list_tools` and `call_tool` as steps; false where the environment's actions have a `type`. */
  readonly toolsAsSteps: boolean;
  /** The client has sent `close`: it needs its session no more. */
  onCloseMessage(socket: WebSocket): void;
}

/** Speaks OpenEnv's session protocol on an accepted socket: one message out for each message in, in order. */
export function serveSession(
  socket: WebSocket,
  session: Session,
  parts: SessionSocketParts,
  caller: Caller,
): void {
  const conversation = new SessionConversation(socket, session, parts, caller);
  // A session that could not be kept must not be played on; the client can resume it.
  const isOver = () => session.failure !== null;
  const tellError = (error: unknown) => {
    const data = errorData(error);
    parts.sessions.counts.countError(data.code);
    return errorText(data);
  };
  answerInOrder(
    socket,
    (data) => {
      try {
        const reply = conversation.answer(data);
        return reply instanceof Promise ? reply.catch(tellError) : reply;
      } catch (error) {
        return tellError(error);
      }
    },
    isOver,
  );
  socket.on('close', () => conversation.end());
}

class SessionConversation {
  readonly #socket: WebSocket;
  readonly #session: Session;
  readonly #parts: SessionSocketParts;
  readonly #caller: Caller;
  #vector: VectorConversation | null = null;

  constructor(socket: WebSocket, session: Session, parts: SessionSocketParts, caller: Caller) {
    this.#caller = caller;
    this.#socket = socket;
    this.#session = session;
    this.#parts = parts;
  }

  /** The reply; `null` for `close`, which has none. */
  answer(data: string | Buffer): Reply | Promise<Reply> {
    if (typeof data !== 'string') {
      if (this.#vector) return this.#vector.stepBinary(data);
      throw InvalidInputError.of('dict_type', [], 'Input should be a text frame, not a binary one');
    }
    const reading = readClientJson(data, this.#caller.name);
    return reading instanceof Promise
      ? reading.then((late) => this.#answerReading(late))
      : this.#answerReading(reading);
  }

  /** The socket is gone. */
  end(): void {
    this.#vector?.close();
  }

  #answerReading(reading: LimitedJsonReading): Reply | Promise<Reply> {
    if (!reading.ok) throw new OpenEnvError('INVALID_JSON', { problem: reading.message });
    const message = reading.value;
    if (!isJsonObject(message))
      throw InvalidInputError.of('dict_type', [], 'Input should be an object with a `type`', message);
    return this.#answerMessage(message);
  }

  #answerMessage(message: JsonObject): Reply | Promise<Reply> {
    const session = this.#session;
    const { readAction, readResetOptions, jsonRpc, toolsAsSteps } = this.#parts;
    switch (message.type) {
      case 'step': {
        const payload = envelope(message, 'required');
        if (toolsAsSteps && (payload.type === 'call_tool' || payload.type === 'list_tools')) {
          return toolStep(payload, session, jsonRpc, this.#caller);
        }
        return observationMessage(session.step(readAction(payload)));
      }
      case 'reset':
        return observationMessage(session.reset(readResetOptions(envelope(message, 'optional'))));
      case 'state': {
        envelope(message, 'forbidden');
        const state = session.state();
        return state instanceof Promise ? state.then(stateMessage) : stateMessage(state);
      }
      case 'mcp':
        return jsonRpc
          .answer(envelope(message, 'required'), session, this.#caller)
          .then((response) => JSON.stringify({ type: 'mcp', data: response }));
      case 'vector_reset':
        this.#vector ??= new VectorConversation(this.#parts, this.#caller.name);
        return this.#vector.reset(envelope(message, 'required'));
      case 'vector_step':
        this.#vector ??= new VectorConversation(this.#parts, this.#caller.name);
        return this.#vector.step(envelope(message, 'required'));
      case 'close':
        envelope(message, 'forbidden');
        this.#parts.onCloseMessage(this.#socket);
        this.#socket.close(1000);
        return null;
      default:
        throw new OpenEnvError('UNKNOWN_TYPE', { type: String(excerpt(message.type ?? '')) });
    }
  }
}

function envelope(message: JsonObject, data: 'required' | 'optional' | 'forbidden'): JsonObject {
  for (const key in message) {
    if (key !== 'type' && (key !== 'data' || data === 'forbidden')) {
      throw InvalidInputError.of('extra_forbidden', [key], 'Extra inputs are not permitted', message[key]);
    }
  }
  const { data: payload } = message;
  if (payload === undefined) {
    if (data !== 'required') return {};
    throw InvalidInputError.of('missing', ['data'], 'Field required', message);
  }
  if (!isJsonObject(payload))
    throw InvalidInputError.of('dict_type', ['data'], 'Input should be a valid dictionary', payload);
  return payload;
}

function observationMessage(
  result: StepResult<object> | Promise<StepResult<object>>,
): string | Promise<string> {
  return result instanceof Promise ? result.then(observationText) : observationText(result);
}

function observationText({ observation, reward, done, metadata }: StepResult<object>): string {
  return `{"type":"observation","data":${JSON.stringify({ observation, reward, done, metadata })}}`;
}

function stateMessage(state: object): string {
  return `{"type":"state","data":${JSON.stringify(state)}}`;
}

/** Tools for clients before OpenEnv 0.4, which call them by actions of a reserved `type`. */
async function toolStep(
  payload: JsonObject,
  session: Session,
  jsonRpc: JsonRpcEndpoint,
  caller: Caller,
): Promise<string> {
  const reply = (observation: object) => observationText({ observation, reward: null, done: false });
  if (payload.type === 'list_tools') return reply({ tools: jsonRpc.listTools() });
  const name = String(payload.tool_name ?? '');
  const failed = (type: string, message: string) =>
    reply({ tool_name: name, result: null, error: { error_type: type, message } });
  if (!jsonRpc.hasTool(name)) return failed('tool_not_found', `Unknown tool: '${name.slice(0, 100)}'`);
  try {
    const value = await jsonRpc.callTool(name, payload.arguments ?? {}, session, caller);
    return reply({ tool_name: name, result: toolCallResult(value), error: null });
  } catch (error) {
    const type = errorCode(error) === 'VALIDATION_ERROR' ? 'invalid_args' : 'execution_error';
    return failed(type, (error as Error).message);
  }
}

/** The `data` of the `error` message that answers an error. */
export function errorData(error: unknown): ErrorData {
  const { webSocket: code, message, issues, details } = errorAnswer(error);
  return code === 'VALIDATION_ERROR'
    ? { message: `Invalid message: ${message}`, code, errors: issues }
    : { message, code, ...details };
}

export function errorText(data: ErrorData): string {
  return JSON.stringify({ type: 'error', data });
}
