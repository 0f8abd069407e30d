import { z } from 'zod';
import {
  type EnvironmentEntry,
  environmentsBody,
  type HealthBody,
  healthBody,
  type MetadataBody,
  metadataBody,
  type ReadonlyDeep,
  schemaBody,
  type TasksBody,
  tasksBody,
} from '../protocol/bodies.ts';
import type { EnvironmentDefinition, TaskSplit } from '../protocol/definition.ts';
import { type AddRoute, httpProblem, jsonValue } from './route-table.ts';
import type { ServerParts } from './server-options.ts';

/** `/tasks`, `/metadata`, `/environments`, `/schema` and `/health`, which clients ask before they start. */
export function mountInformationRoutes(
  addRoute: AddRoute,
  { definition, schemas, sessions }: ServerParts,
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
        reason: problem ?? undefined,
      };
      return draining ? context.json(body, 503) : body;
    },
  );
}

const splitRequest = z.strictObject({ split: z.string() }).meta({ title: 'ListTasksRequest' });
const taskRequest = z.strictObject({ split: z.string(), index: z.int() }).meta({ title: 'GetTaskRequest' });
const rangeRequest = z
  .strictObject({ split: z.string(), start: z.int().nullish(), stop: z.int().nullish() })
  .meta({ title: 'GetTaskRangeRequest' });

const task = jsonValue<object>({ type: 'object' });
const noSplits = { 501: 'The environment has no splits' };

/** OpenEnv's Task API: the episodes of an environment as the splits of a data set. */
export function mountTaskRoutes(addRoute: AddRoute, { id, splits }: EnvironmentDefinition): void {
  const tag = 'Task API';
  const parameters = z.object({ env_name: z.string().meta({ enum: [id] }) });

  addRoute(
    {
      method: 'get',
      path: '/list_environments',
      tag,
      operationId: 'list_environments_list_environments_get',
      summary: 'List the environments of this server',
      answer: z.array(z.string()),
    },
    () => [id],
  );
  addRoute(
    {
      method: 'get',
      path: '/{env_name}/splits',
      tag,
      parameters,
      operationId: 'list_splits__env_name__splits_get',
      summary: 'List the splits',
      answer: z.array(z.object({ name: z.string(), type: z.enum(['train', 'validation', 'test']) })),
      errors: { 404: 'Unknown environment', ...noSplits },
    },
    (_, { parameters: { env_name } }) =>
      splitsOf(env_name, 'list_splits').map(({ name, type }) => ({ name, type })),
  );
  addSplitRoute(
    { operation: 'list_tasks', step: 'tasks', summary: 'List the tasks of a split' },
    splitRequest,
    z.object({ tasks: z.array(task), env_name: z.string() }),
    (split) => ({ tasks: tasksOf(split, 0, split.size), env_name: id }),
  );
  addSplitRoute(
    { operation: 'num_tasks', step: 'num_tasks', summary: 'Count the tasks of a split' },
    splitRequest,
    z.object({ num_tasks: z.int().min(0) }),
    (split) => ({ num_tasks: split.size }),
  );
  addSplitRoute(
    { operation: 'get_task', step: 'task', summary: 'Get one task' },
    taskRequest,
    z.object({ task }),
    (split, { index }) => {
      if (index < 0 || index >= split.size) throw httpProblem(400, 'Invalid task index');
      return { task: split.task(index) };
    },
    { 400: 'Invalid task index' },
  );
  addSplitRoute(
    { operation: 'get_task_range', step: 'task_range', summary: 'Get a range of tasks' },
    rangeRequest,
    z.object({ tasks: z.array(task) }),
    (split, { start, stop }) => ({
      tasks: tasksOf(split, bound(start ?? 0, split.size), bound(stop ?? split.size, split.size)),
    }),
  );

  /** Adds a route whose body names a split. */
  function addSplitRoute<Body extends z.ZodType<{ split: string }>, Answer extends z.ZodType>(
    {
      operation,
      step,
      summary,
    }: { readonly operation: string; readonly step: string; readonly summary: string },
    body: Body,
    answer: Answer,
    answerOf: (split: TaskSplit, body: z.output<Body>) => ReadonlyDeep<z.output<Answer>>,
    errors: Readonly<Record<number, string>> = {},
  ): void {
    addRoute(
      {
        method: 'post',
        path: `/{env_name}/${step}`,
        tag,
        parameters,
        body,
        answer,
        summary,
        operationId: `${operation}__env_name__${step}_post`,
        errors: { 404: 'Unknown environment or split', 422: 'Invalid body', ...noSplits, ...errors },
      },
      (_, { parameters: { env_name }, body }) =>
        answerOf(splitNamed(splitsOf(env_name, operation), body.split), body),
    );
  }

  function splitsOf(asked: string, operation: string): readonly TaskSplit[] {
    if (asked.toLowerCase() !== id.toLowerCase()) {
      throw httpProblem(404, `unknown environment '${asked.slice(0, 100)}'`);
    }
    if (!splits) throw httpProblem(501, `${operation} is not supported for this environment`);
    return splits;
  }
}

function splitNamed(splits: readonly TaskSplit[], name: string): TaskSplit {
  const split = splits.find((candidate) => candidate.name === name);
  if (split) return split;
  const known = splits.map((candidate) => candidate.name).join(', ');
  throw httpProblem(404, `unknown split '${name.slice(0, 100)}'; there are ${known}`);
}

/** Bounds as Python slices take them: negative ones count from the end. */
function bound(position: number, size: number): number {
  return Math.min(Math.max(position < 0 ? size + position : position, 0), size);
}

function tasksOf(split: TaskSplit, start: number, stop: number): object[] {
  return Array.from({ length: Math.max(stop - start, 0) }, (_, offset) => split.task(start + offset));
}
