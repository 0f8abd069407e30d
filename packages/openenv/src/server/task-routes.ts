import type { Context, Hono } from 'hono';
import { z } from 'zod';
import type { EnvironmentDefinition, TaskSplit } from '../definition.ts';
import { HttpProblem } from './http-problem.ts';
import { requestBody } from './request-body.ts';
import type { RouteDescription } from './route-table.ts';

const splitRequest = z.strictObject({ split: z.string() }).meta({ title: 'ListTasksRequest' });
const taskRequest = z.strictObject({ split: z.string(), index: z.int() }).meta({ title: 'GetTaskRequest' });
const rangeRequest = z
  .strictObject({ split: z.string(), start: z.int().nullish(), stop: z.int().nullish() })
  .meta({ title: 'GetTaskRangeRequest' });

/** OpenEnv's Task API: the episodes of an environment as the splits of a data set. */
export function mountTaskRoutes(
  app: Hono,
  { id, splits }: EnvironmentDefinition<unknown, object, object>,
): void {
  app.get('/list_environments', (context) => context.json([id]));

  app.get('/:environment/splits', (context) =>
    context.json(splitsOf(context, 'list_splits').map(({ name, type }) => ({ name, type }))),
  );

  app.post('/:environment/tasks', async (context) => {
    const { split: name } = await requestBody(context, splitRequest);
    const split = splitNamed(splitsOf(context, 'list_tasks'), name);
    return context.json({ tasks: tasksOf(split, 0, split.size), env_name: id });
  });

  app.post('/:environment/num_tasks', async (context) => {
    const { split: name } = await requestBody(context, splitRequest);
    return context.json({ num_tasks: splitNamed(splitsOf(context, 'num_tasks'), name).size });
  });

  app.post('/:environment/task', async (context) => {
    const { split: name, index } = await requestBody(context, taskRequest);
    const split = splitNamed(splitsOf(context, 'get_task'), name);
    if (index < 0 || index >= split.size) throw new HttpProblem(400, 'Invalid task index');
    return context.json({ task: split.task(index) });
  });

  app.post('/:environment/task_range', async (context) => {
    const { split: name, start, stop } = await requestBody(context, rangeRequest);
    const split = splitNamed(splitsOf(context, 'get_task_range'), name);
    return context.json({
      tasks: tasksOf(split, bound(start ?? 0, split.size), bound(stop ?? split.size, split.size)),
    });
  });

  function splitsOf(context: Context, operation: string): readonly TaskSplit[] {
    const asked = context.req.param('environment') ?? '';
    if (asked.toLowerCase() !== id.toLowerCase()) {
      throw new HttpProblem(404, `unknown environment '${asked.slice(0, 100)}'`);
    }
    if (!splits) throw new HttpProblem(501, `${operation} is not supported for this environment`);
    return splits;
  }
}

function splitNamed(splits: readonly TaskSplit[], name: string): TaskSplit {
  const split = splits.find((candidate) => candidate.name === name);
  if (split) return split;
  const known = splits.map((candidate) => candidate.name).join(', ');
  throw new HttpProblem(404, `unknown split '${name.slice(0, 100)}'; there are ${known}`);
}

/** Bounds as Python slices take them: negative ones count from the end. */
function bound(position: number, size: number): number {
  return Math.min(Math.max(position < 0 ? size + position : position, 0), size);
}

function tasksOf(split: TaskSplit, start: number, stop: number): unknown[] {
  return Array.from({ length: Math.max(stop - start, 0) }, (_, offset) => split.task(start + offset));
}

const tag = 'Task API';
const errors = {
  404: 'Unknown environment or split',
  422: 'Invalid body',
  501: 'The environment has no splits',
};
const tasks = { type: 'array', items: { type: 'object' } } as const;

/** Describes the routes above. */
export function describeTaskRoutes({ id }: { readonly id: string }): readonly RouteDescription[] {
  const parameters = { env_name: { type: 'string', enum: [id] } };
  const routes: RouteDescription[] = [
    {
      method: 'get',
      path: '/list_environments',
      operationId: 'list_environments_list_environments_get',
      tag,
      summary: 'List the environments of this server',
      response: { type: 'array', items: { type: 'string' } },
    },
    {
      method: 'get',
      path: '/{env_name}/splits',
      operationId: 'list_splits__env_name__splits_get',
      tag,
      summary: 'List the splits',
      response: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            name: { type: 'string' },
            type: { type: 'string', enum: ['train', 'validation', 'test'] },
          },
          required: ['name', 'type'],
        },
      },
      errors: { 404: 'Unknown environment', 501: 'The environment has no splits' },
    },
    {
      method: 'post',
      path: '/{env_name}/tasks',
      operationId: 'list_tasks__env_name__tasks_post',
      tag,
      summary: 'List the tasks of a split',
      request: splitRequest,
      response: {
        type: 'object',
        properties: { tasks, env_name: { type: 'string' } },
        required: ['tasks', 'env_name'],
      },
      errors,
    },
    {
      method: 'post',
      path: '/{env_name}/num_tasks',
      operationId: 'num_tasks__env_name__num_tasks_post',
      tag,
      summary: 'Count the tasks of a split',
      request: splitRequest,
      response: {
        type: 'object',
        properties: { num_tasks: { type: 'integer', minimum: 0 } },
        required: ['num_tasks'],
      },
      errors,
    },
    {
      method: 'post',
      path: '/{env_name}/task',
      operationId: 'get_task__env_name__task_post',
      tag,
      summary: 'Get one task',
      request: taskRequest,
      response: { type: 'object', properties: { task: { type: 'object' } }, required: ['task'] },
      errors: { 400: 'Invalid task index', ...errors },
    },
    {
      method: 'post',
      path: '/{env_name}/task_range',
      operationId: 'get_task_range__env_name__task_range_post',
      tag,
      summary: 'Get a range of tasks',
      request: rangeRequest,
      response: { type: 'object', properties: { tasks }, required: ['tasks'] },
      errors,
    },
  ];
  return routes.map((route) => ({ ...route, ...(route.path.includes('{') && { parameters }) }));
}
