import type { WebSocket } from 'ws';
import type { Caller } from '../definition.ts';
import type { JsonRpcEndpoint } from '../mcp/json-rpc-endpoint.ts';
import type { Session } from '../sessions/session.ts';
import { answerInOrder } from './answer-in-order.ts';

/** Speaks bare JSON-RPC on an accepted socket; all of its requests act on one session. */
export function serveJsonRpc(
  socket: WebSocket,
  session: Session,
  jsonRpc: JsonRpcEndpoint,
  caller: Caller,
): void {
  answerInOrder(socket, async (data) =>
    JSON.stringify(await jsonRpc.answerText(data.toString(), session, caller)),
  );
}
