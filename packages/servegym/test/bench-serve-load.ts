import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** One request of a load. */
export interface LoadRequest {
  /** After the start of the load, ms; for a follow-up, after the answer to the request before it. */
  readonly atMs: number;
  /** Whether it follows the answer to the request before it. Default false. */
  readonly isFollowUp?: boolean;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** A request as the client saw it. Times in ms. */
export interface LoadResult {
  readonly ttftMs: number;
  /** (last token - first token) / (output tokens - 1). */
  readonly tpotMs: number;
  readonly outputTokens: number;
  readonly promptTokens: number;
  /** When it was sent, after the start of the load. */
  readonly sentMs: number;
}

/**
 * Sends a load open-loop, with the requests of `vllm bench serve --backend openai --ignore-eos`: streamed completions,
 * timed as it times them, from before the request is sent to each chunk with a choice; token counts are those of the
 * usage. Prompts are ids drawn at random, so that no two share a prefix. With a concurrency so many requests are kept in
 * flight instead, in order: the next is sent when one has its answer.
 * @throws when the server refuses one
 */
export async function sendLoad(
  url: string,
  model: string,
  load: readonly LoadRequest[],
  concurrency?: number,
): Promise<LoadResult[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  const bodies = load.map(({ inputTokens, outputTokens }) =>
    JSON.stringify({
      model,
      prompt: Array.from({ length: inputTokens }, () => Math.floor(Math.random() * 100_000)),
      repetition_penalty: 1,
      max_tokens: outputTokens,
      logprobs: null,
      stream: true,
      stream_options: { include_usage: true },
      ignore_eos: true,
    }),
  );
  const startMs = performance.now();
  const answers: Promise<LoadResult>[] = [];
  const keepSending = async () => {
    while (answers.length < load.length) {
      const answer = complete(agent, url, bodies[answers.length], startMs);
      answers.push(answer);
      await answer;
    }
  };
  try {
    if (concurrency !== undefined) {
      await Promise.all(Array.from({ length: concurrency }, keepSending));
      return await Promise.all(answers);
    }
    for (const [i, { atMs, isFollowUp }] of load.entries()) {
      if (isFollowUp) {
        answers.push(
          answers[i - 1].then(async () => {
            await sleep(atMs);
            return complete(agent, url, bodies[i], startMs);
          }),
        );
        continue;
      }
      const dueMs = startMs + atMs;
      await sleep(Math.max(0, dueMs - performance.now() - 1));
      while (performance.now() < dueMs) await new Promise(setImmediate);
      answers.push(complete(agent, url, bodies[i], startMs));
    }
    return await Promise.all(answers);
  } finally {
    agent.destroy();
  }
}

function complete(agent: Agent, url: string, body: string, originMs: number): Promise<LoadResult> {
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    const sent = request(
      new URL('/v1/completions', url),
      { method: 'POST', agent, headers: { 'content-type': 'application/json' } },
      (response) => {
        response.setEncoding('utf8');
        let buffer = '';
        let firstMs = 0;
        let lastMs = 0;
        let usage = { prompt_tokens: 0, completion_tokens: 0 };
        response.on('data', (text: string) => {
          const nowMs = performance.now();
          buffer += text;
          for (let end = buffer.indexOf('\n\n'); end >= 0; end = buffer.indexOf('\n\n')) {
            const data = buffer.slice('data: '.length, end);
            buffer = buffer.slice(end + 2);
            if (data === '[DONE]') continue;
            const chunk = JSON.parse(data);
            if (chunk.choices?.length > 0) {
              if (firstMs === 0) firstMs = nowMs;
              lastMs = nowMs;
            } else if (chunk.usage) {
              usage = chunk.usage;
            }
          }
        });
        response.on('error', reject);
        response.on('end', () => {
          if (response.statusCode !== 200) {
            reject(new Error(`The endpoint answered ${response.statusCode}: ${buffer}`));
            return;
          }
          resolve({
            ttftMs: firstMs - startMs,
            tpotMs: (lastMs - firstMs) / (usage.completion_tokens - 1),
            outputTokens: usage.completion_tokens,
            promptTokens: usage.prompt_tokens,
            sentMs: startMs - originMs,
          });
        });
      },
    );
    sent.setNoDelay(true);
    sent.on('error', reject);
    sent.end(body);
  });
}
