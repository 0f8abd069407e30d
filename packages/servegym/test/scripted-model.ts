import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request to the model, as the Chat Completions API has it. */
export interface ModelRequest {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly response_format?: { readonly type: string };
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}

/** An answer of the model: a text, the arguments of a tool call, an error status, or headers and then nothing. */
export type ModelAnswer =
  | { readonly content: string }
  | { readonly toolArguments: string }
  | { readonly hangs: true }
  | { readonly status: number; readonly message?: string };

/** A model that answers by a script, behind the Chat Completions API. */
export interface ScriptedModel {
  /** With `/v1`. */
  readonly baseUrl: string;
  readonly requests: readonly ModelRequest[];
  close(): Promise<void>;
}

/** An action of `llmserve` for a model to answer. */
export const ACTION = {
  batch_cap: 48,
  kv_budget_fraction: 0.5,
  speculation_depth: 1,
  quantization_tier: 'FP16',
  prefill_decode_split: false,
  priority_routing: false,
};

/** Tokens that every answer reports. */
export const PROMPT_TOKENS = 100;
export const COMPLETION_TOKENS = 20;

export async function startScriptedModel(
  script: (request: ModelRequest, index: number) => ModelAnswer | Promise<ModelAnswer>,
): Promise<ScriptedModel> {
  const requests: ModelRequest[] = [];
  const server = createServer(async (incoming, response) => {
    let text = '';
    for await (const piece of incoming) text += piece;
    const request = JSON.parse(text) as ModelRequest;
    requests.push(request);
    const answer = await script(request, requests.length - 1);
    response.setHeader('content-type', 'application/json');
    if ('status' in answer) {
      const { status, message = 'refused by the script' } = answer;
      response.writeHead(status, { 'retry-after-ms': '1' });
      response.end(JSON.stringify({ error: { message, type: 'x', code: null, param: null } }));
      return;
    }
    if ('hangs' in answer) {
      response.flushHeaders();
      return;
    }
    const message =
      'content' in answer
        ? { role: 'assistant', content: answer.content }
        : {
            role: 'assistant',
            content: null,
            tool_calls: [
              {
                id: 'call',
                type: 'function',
                function: { name: request.tools![0].function.name, arguments: answer.toolArguments },
              },
            ],
          };
    response.end(
      JSON.stringify({
        id: 'c',
        object: 'chat.completion',
        created: 0,
        model: request.model,
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage: {
          prompt_tokens: PROMPT_TOKENS,
          completion_tokens: COMPLETION_TOKENS,
          total_tokens: PROMPT_TOKENS + COMPLETION_TOKENS,
        },
      }),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
