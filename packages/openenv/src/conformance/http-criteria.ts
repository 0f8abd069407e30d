import { isJsonObject } from '../json/json-object.ts';
import type { Check, Finding } from './check.ts';
import { at } from './foreign-json.ts';
import type { Subject } from './subject.ts';

/** The criteria of `openenv validate --url`, with its ids and its judgement. */
export const HTTP_CRITERIA: readonly Check[] = [
  {
    id: 'openapi_version_available',
    description: 'GET /openapi.json returns OpenAPI info.version',
    required: true,
    run: (subject) => judge(subject, 'openapi.json', { 'info.version': 'string' }),
  },
  {
    id: 'health_endpoint',
    description: 'GET /health returns healthy status',
    required: true,
    async run(subject) {
      const { status, body } = await subject.get('health');
      return {
        passed: status === 200 && at(body, 'status') === 'healthy',
        expected: { status_code: 200, status: 'healthy' },
        actual: { status_code: status, status: at(body, 'status') ?? null },
      };
    },
  },
  {
    id: 'metadata_endpoint',
    description: 'GET /metadata returns name and description',
    required: true,
    run: (subject) => judge(subject, 'metadata', { name: 'string', description: 'string' }),
  },
  {
    id: 'schema_endpoint',
    description: 'GET /schema returns action, observation, and state schemas',
    required: true,
    run: (subject) => judge(subject, 'schema', { action: 'object', observation: 'object', state: 'object' }),
  },
  {
    id: 'mcp_endpoint',
    description: 'POST /mcp is reachable and returns JSON-RPC payload',
    required: true,
    async run(subject) {
      const { status, body } = await subject.post('mcp', {});
      return {
        passed: status === 200 && at(body, 'jsonrpc') === '2.0',
        expected: { status_code: 200, jsonrpc: '2.0' },
        actual: { status_code: status, jsonrpc: at(body, 'jsonrpc') ?? null },
      };
    },
  },
  {
    id: 'mode_endpoint_consistency',
    description: 'OpenAPI endpoint set matches OpenEnv mode contract',
    required: true,
    async run(subject) {
      const paths = at((await subject.get('openapi.json')).body, 'paths');
      if (!isJsonObject(paths) || Object.keys(paths).length === 0) {
        return { passed: false, details: 'Cannot determine mode without OpenAPI paths' };
      }
      const [reset, step, state] = ['/reset', '/step', '/state'].map((path) => path in paths);
      return {
        passed: reset === step && reset === state,
        expected: { '/reset': reset, '/step': reset, '/state': reset },
        actual: { '/reset': reset, '/step': step, '/state': state },
      };
    },
  },
];

/** Whether a path answers 200 with fields of these types. */
async function judge(
  subject: Subject,
  path: string,
  fields: Readonly<Record<string, 'string' | 'object'>>,
): Promise<Finding> {
  const { status, body } = await subject.get(path);
  const actual: Record<string, unknown> = { status_code: status };
  let passed = status === 200;
  for (const [field, type] of Object.entries(fields)) {
    const value = at(body, ...field.split('.'));
    const fits = type === 'object' ? isJsonObject(value) : typeof value === type;
    passed &&= fits;
    actual[field] = fits ? type : value === undefined ? 'missing' : typeof value;
  }
  return { passed, expected: { status_code: 200, ...fields }, actual };
}
