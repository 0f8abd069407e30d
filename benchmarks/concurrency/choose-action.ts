import { sampleValue } from '@servegym/openenv';
import { schemaCheck } from '@servegym/openenv/validate';

type JsonSchema = Parameters<typeof sampleValue>[0];

const DEFAULT_WAIT_S = 1;

/**
 * The action that a load sends to a server: one made from its schema, with `wait_seconds` where it has that, as the
 * `benchmark` environment does. `waitS` is what was asked for, if anything.
 * @throws Error when the server cannot be asked, does not wait though it was asked to, or its schema is too much.
 */
export async function chooseAction(
  base: URL,
  { waitS, timeoutMs, headers }: { waitS?: number; timeoutMs: number; headers: HeadersInit },
): Promise<Record<string, unknown>> {
  const schema = await actionSchema(base, timeoutMs, headers);
  const waits = Object.hasOwn((schema.properties as object | undefined) ?? {}, 'wait_seconds');
  if (waitS !== undefined && !waits) {
    throw new Error(
      `the actions of ${base.href} have no \`wait_seconds\`: leave --wait out, or give an --action`,
    );
  }
  const sample = sampleValue(schema);
  const action = waits ? { ...(sample as object), wait_seconds: waitS ?? DEFAULT_WAIT_S } : sample;
  const flaw = flawOf(schema, action);
  if (flaw !== null) {
    throw new Error(`cannot make an action from the schema of ${base.href}: ${flaw}. Give one with --action`);
  }
  return action as Record<string, unknown>;
}

async function actionSchema(base: URL, timeoutMs: number, headers: HeadersInit): Promise<JsonSchema> {
  const url = new URL('schema', base);
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(timeoutMs) });
    if (!response.ok) throw new Error(`it answered ${response.status}`);
    const { action } = (await response.json()) as { action?: JsonSchema };
    if (typeof action !== 'object' || action === null) throw new Error('it has no schema of the action');
    return action;
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = (cause as { code?: string } | undefined)?.code ?? message;
    throw new Error(`cannot read ${url.href}: ${reason}. Is an OpenEnv server running there?`);
  }
}

function flawOf(schema: JsonSchema, action: unknown): string | null {
  try {
    return action === undefined ? 'it asks for more than plain values' : schemaCheck(schema)(action);
  } catch (error) {
    return (error as Error).message;
  }
}
