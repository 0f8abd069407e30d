import type { ServerResponse } from 'node:http';

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
};

/** Server-sent events, written straight to the socket: each event leaves in the turn in which it is sent. */
export class EventStream {
  readonly #response: ServerResponse;

  /** Sends the headers. @param headers beside those of an event stream */
  constructor(response: ServerResponse, headers: Readonly<Record<string, string>>) {
    this.#response = response;
    response.socket?.setNoDelay(true);
    response.writeHead(200, { ...headers, ...HEADERS });
    response.flushHeaders();
  }

  /** @param json one event, or several */
  send(...json: readonly string[]): void {
    if (!this.#response.destroyed) this.#response.write(json.map((one) => `data: ${one}\n\n`).join(''));
  }

  /** Sends `[DONE]` and ends. */
  end(): void {
    if (!this.#response.destroyed) this.#response.end('data: [DONE]\n\n');
  }
}
