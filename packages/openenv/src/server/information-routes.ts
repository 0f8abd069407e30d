import type { Hono } from 'hono';
import type { EnvironmentDefinition } from '../definition.ts';
import type {
  EnvironmentsBody,
  HealthBody,
  MetadataBody,
  SchemaBody,
  TasksBody,
} from '../protocol/http-body.ts';
import type { SessionRegistry } from '../sessions/session-registry.ts';

/** `/health`, `/metadata`, `/schema`, `/tasks` and `/environments`: what a client may want to know before it starts. */
export function mountInformationRoutes(
  app: Hono,
  definition: EnvironmentDefinition<unknown, object, object>,
  schemas: SchemaBody,
  sessions: SessionRegistry,
  isDraining: () => boolean,
  environments: () => EnvironmentsBody,
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

  app.get('/health', (context) => {
    const draining = isDraining();
    const problem = sessions.storeCondition?.problem;
    const body: HealthBody = {
      status: draining ? 'unhealthy' : problem ? 'degraded' : 'healthy',
      active_sessions: sessions.size,
      uptime_seconds: Math.round(performance.now() - startedAt) / 1000,
      ...(problem && { reason: problem }),
    };
    return context.json(body, draining ? 503 : 200);
  });
  app.get('/metadata', (context) => context.json(metadata));
  app.get('/schema', (context) => context.json(schemas));
  app.get('/tasks', (context) => context.json(tasks));
  app.get('/environments', (context) => context.json(environments()));
}
