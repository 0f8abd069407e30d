import { z } from 'zod';
import { connectionFailure, describeFailure, type RealFailure, serverSentence } from './real-failure.ts';

/** What `GET /admin/knobs` of a `servegym endpoint` answers, as far as it is needed here. */
const endpointKnobs = z.object({
  quality: z.number(),
  usd_per_hour: z.number(),
  engines: z.array(
    z.object({
      memory_gib: z.object({
        weights: z.number(),
        draft: z.number(),
        overhead: z.number(),
        kv_pool: z.number(),
        limit: z.number().positive(),
      }),
    }),
  ),
});
export type EndpointKnobs = z.infer<typeof endpointKnobs>;

/** An endpoint whose knobs cannot be read or set. */
export class EndpointRefusal extends Error {
  readonly failure: RealFailure;
  constructor(failure: RealFailure, url: string, apiKey: string) {
    super(describeFailure(failure, url, apiKey));
    this.failure = failure;
  }
}

/** @throws EndpointRefusal */
export async function readKnobs(root: string, apiKey: string, signal: AbortSignal): Promise<EndpointKnobs> {
  const body = await exchange(root, apiKey, { method: 'GET', signal });
  const read = endpointKnobs.safeParse(body);
  if (read.success) return read.data;
  const sentence = 'The answer is not that of a servegym endpoint';
  throw new EndpointRefusal({ outcome: 'http_200', status: 200, sentence }, knobsUrl(root), apiKey);
}

/** Changes the knobs named in `changes`. @throws EndpointRefusal */
export async function writeKnobs(
  root: string,
  apiKey: string,
  changes: object,
  signal: AbortSignal,
): Promise<void> {
  await exchange(root, apiKey, { method: 'PATCH', body: JSON.stringify(changes), signal });
}

function knobsUrl(root: string): string {
  return `${root}/admin/knobs`;
}

async function exchange(root: string, apiKey: string, init: RequestInit): Promise<unknown> {
  const url = knobsUrl(root);
  let status: number;
  let isOk: boolean;
  let text: string;
  try {
    const answer = await fetch(url, {
      ...init,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
    });
    ({ status, ok: isOk } = answer);
    text = await answer.text();
  } catch (error) {
    throw new EndpointRefusal(connectionFailure(error), url, apiKey);
  }
  if (!isOk) {
    const failure = { outcome: `http_${status}`, status, sentence: serverSentence(text) };
    throw new EndpointRefusal(failure, url, apiKey);
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
