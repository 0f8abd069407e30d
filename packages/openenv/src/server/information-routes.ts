import { z } from 'zod';
import type { EnvironmentDefinition, TaskSplit } from '../protocol/definition.ts';
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
} from '../protocol/messages.ts';
import type { ServerParts } from './create-server.ts';
import { type AddRoute, described, httpProblem, jsonValue } from './route-table.ts';

/** `/tasks`, `/metadata`, `/environments`, `/schema` and `/health`, which clients ask before they start. */
export function mountInformationRoutes(
  addRoute: AddRoute,
  { definition, schemas, sessions }: ServerParts,
  isDraining: () => boolean,
  environments: () => readonly EnvironmentEntry[],
): void {
  const startedAt = performance.now();
  const { name, description, version, readme = null, author = null, documentationUrl = null } = definition;
  const texts = { readme_content: readme, documentation_url: documentationUrl };
  const metadata: MetadataBody = { name, description, version, author, ...texts };
  const tasks: TasksBody = { tasks: definition.tasks ?? [], action_schema: schemas.action };

  addRoute({ ...described('list_tasks_get'), answer: tasksBody }, () => tasks);
  addRoute({ ...described('endpoint_metadata_get'), answer: metadataBody }, () => metadata);
  addRoute({ ...described('list_environments_get'), answer: environmentsBody }, () => ({
    environments: environments(),
  }));
  addRoute({ ...described('get_schemas_schema_get'), answer: schemaBody }, () => schemas);
  addRoute({ ...described('endpoint_health_get'), answer: healthBody, errorBody: healthBody }, (context) => {
    const draining = isDraining();
    const unsaved = sessions.storeCondition?.problem;
    const problems = [unsaved, sessions.capacity.problem].filter(Boolean);
    const body: HealthBody = {
      // A server that is full is healthy: OpenEnv's own checks and balancers would leave it out.
      status: draining ? 'unhealthy' : unsaved ? 'degraded' : 'healthy',
      active_sessions: sessions.size,
      uptime_seconds: Math.round(performance.now() - startedAt) / 1000,
      reason: problems.join(' ') || undefined,
    };
    return draining ? context.json(body, 503) : body;
  });
}

const splitRequest = z.strictObject({ split: z.string() }).meta({ title: 'ListTasksRequest' });
const taskRequest = z.strictObject({ split: z.string(), index: z.int() }).meta({ title: 'GetTaskRequest' });
const rangeRequest = z
  .strictObject({ split: z.string(), start: z.int().nullish(), stop: z.int().nullish() })
  .meta({ title: 'GetTaskRangeRequest' });

const task = jsonValue<object>({ type: 'object' });

/** OpenEnv's Task API: the episodes of an environment as the splits of a data set. */
export function mountTaskRoutes(addRoute: AddRoute, { id, splits }: EnvironmentDefinition): void {
  const parameters = z.object({ env_name: z.string().meta({ enum: [id] }) });

  addRoute({ ...described('list_environments_list_environments_get'), answer: z.array(z.string()) }, () => [
    id,
  ]);
  addRoute(
    {
      ...described('list_splits__env_name__splits_get'),
      parameters,
      answer: z.array(z.object({ name: z.string(), type: z.enum(['train', 'validation', 'test']) })),
    },
    (_, { parameters: { env_name } }) =>
      splitsOf(env_name, 'list_splits').map(({ name, type }) => ({ name, type })),
  );
  addSplitRoute(
    'list_tasks__env_name__tasks_post',
    splitRequest,
    z.object({ tasks: z.array(task), env_name: z.string() }),
    (split) => ({ tasks: tasksOf(split, 0, split.size), env_name: id }),
  );
  addSplitRoute(
    'num_tasks__env_name__num_tasks_post',
    splitRequest,
    z.object({ num_tasks: z.int().min(0) }),
    (split) => ({ num_tasks: split.size }),
  );
  addSplitRoute('get_task__env_name__task_post', taskRequest, z.object({ task }), (split, { index }) => {
    if (index < 0 || index >= split.size) throw httpProblem(400, 'Invalid task index');
    return { task: split.task(index) };
  });
  addSplitRoute(
    'get_task_range__env_name__task_range_post',
    rangeRequest,
    z.object({ tasks: z.array(task) }),
    (split, { start, stop }) => ({
      tasks: tasksOf(split, bound(start ?? 0, split.size), bound(stop ?? split.size, split.size)),
    }),
  );

  function addSplitRoute<Body extends z.ZodType<{ split: string }>, Answer extends z.ZodType>(
    operationId: Parameters<typeof described>[0],
    body: Body,
    answer: Answer,
    answerOf: (split: TaskSplit, body: z.output<Body>) => ReadonlyDeep<z.output<Answer>>,
  ): void {
    const [operation] = operationId.split('__');
    addRoute(
      { ...described(operationId), parameters, body, answer },
      (_, { parameters: { env_name }, body }) => {
        const offered = splitsOf(env_name, operation);
        const split = offered.find(({ name }) => name === body.split);
        if (split) return answerOf(split, body);
        const known = offered.map(({ name }) => name).join(', ');
        throw httpProblem(404, `unknown split '${body.split.slice(0, 100)}'; there are ${known}`);
      },
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

/** Bounds as Python slices take them: negative ones count from the end. */
function bound(position: number, size: number): number {
  return Math.min(Math.max(position < 0 ? size + position : position, 0), size);
}

function tasksOf(split: TaskSplit, start: number, stop: number): object[] {
  return Array.from({ length: Math.max(stop - start, 0) }, (_, offset) => split.task(start + offset));
}
