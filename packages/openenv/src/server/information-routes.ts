import {
  type EnvironmentEntry,
  environmentsBody,
  type HealthBody,
  healthBody,
  type MetadataBody,
  metadataBody,
  schemaBody,
  type TasksBody,
  tasksBody,
} from '../protocol/bodies.ts';
import type { RouteParts } from './environment-routes.ts';
import type { AddRoute } from './route-table.ts';

/** `/tasks`, `/metadata`, `/environments`, `/schema` and `/health`, which clients ask before they start. */
export function mountInformationRoutes(
  addRoute: AddRoute,
  { definition, schemas, sessions }: Pick<RouteParts, 'definition' | 'schemas' | 'sessions'>,
  isDraining: () => boolean,
  environments: () => readonly EnvironmentEntry[],
): void {
  const startedAt = performance.now();
  const metadata: MetadataBody = {
    name: definition.name,
    description: definition.description,
    readme_content: definition.readme ?? null,
    version: definition.version,
    author: definition.author ?? null,
    documentation_url: definition.documentationUrl ?? null,
  };
  const tasks: TasksBody = { tasks: definition.tasks ?? [], action_schema: schemas.action };
  const information = { method: 'get', tag: 'Environment Info' } as const;

  addRoute(
    {
      ...information,
      path: '/tasks',
      operationId: 'list_tasks_get',
      summary: 'List the tasks and the schema of the action',
      answer: tasksBody,
    },
    () => tasks,
  );
  addRoute(
    {
      ...information,
      path: '/metadata',
      operationId: 'endpoint_metadata_get',
      summary: 'Get environment metadata',
      answer: metadataBody,
    },
    () => metadata,
  );
  addRoute(
    {
      ...information,
      path: '/environments',
      operationId: 'list_environments_get',
      summary: 'List the environments of this port',
      description: 'Each has a server of its own; `path` is its root, relative to the root of this one.',
      answer: environmentsBody,
    },
    () => ({ environments: environments() }),
  );
  addRoute(
    {
      ...information,
      path: '/schema',
      operationId: 'get_schemas_schema_get',
      tag: 'Schema',
      summary: 'Get all JSON schemas',
      answer: schemaBody,
    },
    () => schemas,
  );
  addRoute(
    {
      ...information,
      path: '/health',
      operationId: 'endpoint_health_get',
      tag: 'Health',
      summary: 'Health check',
      answer: healthBody,
      errors: { 503: { meaning: 'The server is shutting down', body: healthBody } },
    },
    (context) => {
      const draining = isDraining();
      const problem = sessions.storeCondition?.problem;
      const body: HealthBody = {
        status: draining ? 'unhealthy' : problem ? 'degraded' : 'healthy',
        active_sessions: sessions.size,
        uptime_seconds: Math.round(performance.now() - startedAt) / 1000,
        ...(problem && { reason: problem }),
      };
      return draining ? context.json(body, 503) : body;
    },
  );
}
