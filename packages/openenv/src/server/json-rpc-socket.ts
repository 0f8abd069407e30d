import type { Caller } from '../definition.ts';
import type { JsonRpcEndpoint } from '../mcp/json-rpc-endpoint.ts';
import type { Session } from '../sessions/session.ts';
import type { ServerWebSocket } from '../web-socket/server-web-socket.ts';
import { answerInOrder } from './answer-in-order.ts';

/** Speaks bare JSON-RPC on an accepted socket; all of its requests act on one session. */
export function serveJsonRpc(
  socket: ServerWebSocket,
  session: Session,
  jsonRpc: JsonRpcEndpoint,
  caller: Caller,
): void {
  answerInOrder(socket, async (data) =>
    JSON.stringify(await jsonRpc.answerText(data.toString(), session, caller)),
  );
}
