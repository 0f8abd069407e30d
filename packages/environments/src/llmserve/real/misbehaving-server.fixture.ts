import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** How the server answers a completion. */
export type Manner =
  | 'well'
  /** Well, after a while. */
  | 'slow'
  /** 429 twice, then well. */
  | 'busy'
  | 'broken'
  | 'unauthorized'
  /** Sends the first token and then nothing. */
  | 'hanging'
  /** Ends the connection in the middle of the stream. */
  | 'cut'
  /** Ends the stream without a reason and without `[DONE]`. */
  | 'short'
  | 'garbage'
  /** Never answers. */
  | 'silent';

/** A server of the OpenAI API that behaves as it is told. */
export interface MisbehavingServer {
  /** With `/v1`. */
  readonly baseUrl: string;
  /** Bodies of the completions that were asked for. */
  readonly bodies: Record<string, unknown>[];
  /** Requests that have not been answered to the end. */
  readonly open: number;
  /** Most requests that were open at once since it was last set. */
  mostOpen: number;
  manner: Manner;
  close(): Promise<void>;
}

const TOKENS = 5;

export async function startMisbehavingServer(): Promise<MisbehavingServer> {
  const bodies: Record<string, unknown>[] = [];
  const refused = new Map<unknown, number>();
  let open = 0;
  let mostOpen = 0;
  const state = { manner: 'well' as Manner };

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === '/v1/models') {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ object: 'list', data: [{ id: 'first', object: 'model' }] }));
      return;
    }
    if (request.url !== '/v1/chat/completions') {
      response.writeHead(404).end();
      return;
    }
    open++;
    mostOpen = Math.max(mostOpen, open);
    response.on('close', () => open--);
    let text = '';
    for await (const piece of request) text += piece;
    const body = JSON.parse(text);
    bodies.push(body);
    const error = (status: number) =>
      response
        .writeHead(status, { 'content-type': 'application/json', 'retry-after-ms': '1' })
        .end(JSON.stringify({ error: { message: 'no', type: 'x', code: 'x', param: null } }));
    const start = () => response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (choice: object | null, usage?: object) =>
      response.write(`data: ${JSON.stringify({ id: 'c', choices: choice ? [choice] : [], usage })}\n\n`);
    const token = (finish_reason: string | null = null) =>
      send({ index: 0, delta: { content: ' tok' }, finish_reason });
    const well = () => {
      start();
      for (let i = 1; i < TOKENS; i++) token();
      token('length');
      send(null, { prompt_tokens: 11, completion_tokens: TOKENS, total_tokens: 11 + TOKENS });
      response.end('data: [DONE]\n\n');
    };
    const prompt = body.messages[0].content;
    switch (state.manner) {
      case 'well':
        return well();
      case 'slow':
        return void setTimeout(well, 20);
      case 'busy': {
        const times = refused.get(prompt) ?? 0;
        refused.set(prompt, times + 1);
        return times < 2 ? void error(429) : well();
      }
      case 'broken':
        return void error(500);
      case 'unauthorized':
        return void error(401);
      case 'hanging':
        start();
        return void token();
      case 'cut':
        start();
        token();
        setImmediate(() => response.destroy());
        return;
      case 'short':
        start();
        token();
        return void response.end();
      case 'garbage':
        start();
        return void response.end('data: {"choices": [\n\n');
      case 'silent':
        return;
    }
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    bodies,
    get open() {
      return open;
    },
    get mostOpen() {
      return mostOpen;
    },
    set mostOpen(most) {
      mostOpen = most;
    },
    get manner() {
      return state.manner;
    },
    set manner(manner) {
      state.manner = manner;
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
