import { z } from 'zod';

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

/** An endpoint that answers, though not with what was asked for. */
export class EndpointRefusal extends Error {
  override readonly name = 'EndpointRefusal';
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** @throws TypeError when the endpoint cannot be reached; EndpointRefusal when it answers with something else */
export async function readKnobs(root: string, apiKey: string, signal: AbortSignal): Promise<EndpointKnobs> {
  const body = await exchange(root, apiKey, { method: 'GET', signal });
  const read = endpointKnobs.safeParse(body);
  if (read.success) return read.data;
  throw new EndpointRefusal(200, `${root}/admin/knobs is not that of a servegym endpoint`);
}

/** Changes the knobs named in `changes`. @throws as `readKnobs` */
export async function writeKnobs(
  root: string,
  apiKey: string,
  changes: object,
  signal: AbortSignal,
): Promise<void> {
  await exchange(root, apiKey, { method: 'PATCH', body: JSON.stringify(changes), signal });
}

async function exchange(root: string, apiKey: string, init: RequestInit): Promise<unknown> {
  const answer = await fetch(`${root}/admin/knobs`, {
    ...init,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
  });
  const text = await answer.text();
  if (!answer.ok) throw new EndpointRefusal(answer.status, messageOf(text));
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function messageOf(text: string): string {
  try {
    const message = JSON.parse(text)?.error?.message;
    return typeof message === 'string' ? message : text.slice(0, 200);
  } catch {
    return text.slice(0, 200);
  }
}
