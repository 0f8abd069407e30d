import { isJsonObject, type JsonObject } from '../json/json-object.ts';
import type { SchemaBody } from '../protocol/http-body.ts';
import { type Checklist, expect, type ValidationReport } from './validation-report.ts';

export interface HttpFindings {
  readonly version: string;
  readonly mode: ValidationReport['mode'];
  readonly schemas: SchemaBody | undefined;
}

/** The six criteria of `openenv validate --url`. */
export async function checkHttp(list: Checklist, base: URL, timeoutMs: number): Promise<HttpFindings> {
  const ask = async (path: string, init: RequestInit = {}): Promise<JsonObject> => {
    const response = await fetch(new URL(path, base), { ...init, signal: AbortSignal.timeout(timeoutMs) });
    const text = await response.text();
    expect(response.status === 200, `expected status 200, got ${response.status}`);
    const body: unknown = JSON.parse(text);
    expect(isJsonObject(body), `expected an object, got ${text.slice(0, 100)}`);
    return body;
  };

  const openApi = await list.check(
    'openapi_version_available',
    'GET /openapi.json returns OpenAPI info.version',
    async () => {
      const document = await ask('openapi.json');
      const { info, paths } = document;
      expect(isJsonObject(info) && typeof info.version === 'string', 'info.version is no text');
      return { version: info.version as string, paths: isJsonObject(paths) ? paths : {} };
    },
  );
  await list.check('health_endpoint', 'GET /health returns healthy status', async () => {
    const { status } = await ask('health');
    expect(status === 'healthy', `expected the status 'healthy', got ${JSON.stringify(status)}`);
  });
  await list.check('metadata_endpoint', 'GET /metadata returns name and description', async () => {
    const { name, description } = await ask('metadata');
    expect(typeof name === 'string' && typeof description === 'string', 'name or description is no text');
  });
  const schemas = await list.check(
    'schema_endpoint',
    'GET /schema returns action, observation, and state schemas',
    async () => {
      const body = await ask('schema');
      for (const part of ['action', 'observation', 'state']) {
        expect(isJsonObject(body[part]), `${part} is no object`);
      }
      return body as unknown as SchemaBody;
    },
  );
  await list.check('mcp_endpoint', 'POST /mcp is reachable and returns JSON-RPC payload', async () => {
    const { jsonrpc } = await ask('mcp', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    expect(jsonrpc === '2.0', `expected jsonrpc '2.0', got ${JSON.stringify(jsonrpc)}`);
  });
  const mode = await list.check(
    'mode_endpoint_consistency',
    'OpenAPI endpoint set matches OpenEnv mode contract',
    () => {
      expect(openApi !== undefined, 'cannot be told without the OpenAPI document');
      const [reset, ...others] = ['/reset', '/step', '/state'].map((path) => path in openApi.paths);
      expect(
        others.every((other) => other === reset),
        '/reset, /step and /state must be there together or not at all',
      );
      return reset ? ('simulation' as const) : ('production' as const);
    },
  );
  return { version: openApi?.version ?? 'unknown', mode: mode ?? 'unknown', schemas };
}
