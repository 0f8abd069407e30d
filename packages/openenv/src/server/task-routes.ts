import { z } from 'zod';
import type { EnvironmentDefinition, TaskSplit } from '../definition.ts';
import { HttpProblem } from './http-problem.ts';
import { type AddRoute, jsonValue } from './route-table.ts';

const splitRequest = z.strictObject({ split: z.string() }).meta({ title: 'ListTasksRequest' });
const taskRequest = z.strictObject({ split: z.string(), index: z.int() }).meta({ title: 'GetTaskRequest' });
const rangeRequest = z
  .strictObject({ split: z.string(), start: z.int().nullish(), stop: z.int().nullish() })
  .meta({ title: 'GetTaskRangeRequest' });

const task = jsonValue<object>({ type: 'object' });
const tag = 'Task API';
const noSplits = { 501: 'The environment has no splits' };
const errors = { 404: 'Unknown environment or split', 422: 'Invalid body', ...noSplits };

/** OpenEnv's Task API: the episodes of an environment as the splits of a data set. */
export function mountTaskRoutes(
  addRoute: AddRoute,
  { id, splits }: EnvironmentDefinition<unknown, object, object>,
): void {
  const parameters = z.object({ env_name: z.string().meta({ enum: [id] }) });

  addRoute(
    {
      method: 'get',
      path: '/list_environments',
      operationId: 'list_environments_list_environments_get',
      tag,
      summary: 'List the environments of this server',
      answer: z.array(z.string()),
    },
    () => [id],
  );
  addRoute(
    {
      method: 'get',
      path: '/{env_name}/splits',
      operationId: 'list_splits__env_name__splits_get',
      tag,
      summary: 'List the splits',
      parameters,
      answer: z.array(z.object({ name: z.string(), type: z.enum(['train', 'validation', 'test']) })),
      errors: { 404: 'Unknown environment', ...noSplits },
    },
    (_, input) => splitsOf(input, 'list_splits').map(({ name, type }) => ({ name, type })),
  );
  addRoute(
    {
      method: 'post',
      path: '/{env_name}/tasks',
      operationId: 'list_tasks__env_name__tasks_post',
      tag,
      summary: 'List the tasks of a split',
      parameters,
      body: splitRequest,
      answer: z.object({ tasks: z.array(task), env_name: z.string() }),
      errors,
    },
    (_, input) => {
      const split = splitOf(input, 'list_tasks');
      return { tasks: tasksOf(split, 0, split.size), env_name: id };
    },
  );
  addRoute(
    {
      method: 'post',
      path: '/{env_name}/num_tasks',
      operationId: 'num_tasks__env_name__num_tasks_post',
      tag,
      summary: 'Count the tasks of a split',
      parameters,
      body: splitRequest,
      answer: z.object({ num_tasks: z.int().min(0) }),
      errors,
    },
    (_, input) => ({ num_tasks: splitOf(input, 'num_tasks').size }),
  );
  addRoute(
    {
      method: 'post',
      path: '/{env_name}/task',
      operationId: 'get_task__env_name__task_post',
      tag,
      summary: 'Get one task',
      parameters,
      body: taskRequest,
      answer: z.object({ task }),
      errors: { 400: 'Invalid task index', ...errors },
    },
    (_, input) => {
      const split = splitOf(input, 'get_task');
      const { index } = input.body;
      if (index < 0 || index >= split.size) throw new HttpProblem(400, 'Invalid task index');
      return { task: split.task(index) };
    },
  );
  addRoute(
    {
      method: 'post',
      path: '/{env_name}/task_range',
      operationId: 'get_task_range__env_name__task_range_post',
      tag,
      summary: 'Get a range of tasks',
      parameters,
      body: rangeRequest,
      answer: z.object({ tasks: z.array(task) }),
      errors,
    },
    (_, input) => {
      const split = splitOf(input, 'get_task_range');
      const { start, stop } = input.body;
      return { tasks: tasksOf(split, bound(start ?? 0, split.size), bound(stop ?? split.size, split.size)) };
    },
  );

  type Asked = { readonly parameters: { readonly env_name: string } };

  function splitsOf({ parameters: { env_name: asked } }: Asked, operation: string): readonly TaskSplit[] {
    if (asked.toLowerCase() !== id.toLowerCase()) {
      throw new HttpProblem(404, `unknown environment '${asked.slice(0, 100)}'`);
    }
    if (!splits) throw new HttpProblem(501, `${operation} is not supported for this environment`);
    return splits;
  }

  function splitOf(
    input: Asked & { readonly body: { readonly split: string } },
    operation: string,
  ): TaskSplit {
    return splitNamed(splitsOf(input, operation), input.body.split);
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

function tasksOf(split: TaskSplit, start: number, stop: number): object[] {
  return Array.from({ length: Math.max(stop - start, 0) }, (_, offset) => split.task(start + offset));
}
