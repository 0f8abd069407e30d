import { connect, type Grade, type ResetOptions } from '@servegym/openenv';
import { InputError } from '../input-error.ts';
import type { BaselineEnvironment } from './baseline-environments.ts';

export interface RuntimeStep {
  readonly observation: object;
  readonly reward: number | null;
  readonly done: boolean;
}

/** Where the episodes of a baseline are played: in this process, or at a server. */
export interface BaselineRuntime {
  reset(options: ResetOptions): Promise<RuntimeStep>;
  step(action: Record<string, unknown>): Promise<RuntimeStep>;
  /** The grade of the episode that was played last; `null` where the environment has no grader. */
  grade(): Promise<Grade | null>;
  close(): Promise<void>;
}

export function inProcessRuntime({ definition }: BaselineEnvironment): BaselineRuntime {
  const instance = definition.create();
  let reset: ResetOptions = {};
  let actions: Record<string, unknown>[] = [];
  return {
    async reset(options) {
      reset = options;
      actions = [];
      return instance.reset(options);
    },
    async step(action) {
      actions.push(action);
      return instance.step(action);
    },
    async grade() {
      return definition.grade?.({ reset, actions }) ?? null;
    },
    async close() {
      await instance.close?.();
    },
  };
}

/** @throws InputError when there is no server, or one of another environment */
export async function httpRuntime(url: URL, { definition }: BaselineEnvironment): Promise<BaselineRuntime> {
  const client = await connect(url).catch((error: Error) => {
    throw new InputError(
      `${url.href} is no OpenEnv server that answers: ${error.message}. Start one: servegym serve --env ${definition.id}`,
    );
  });
  const { name } = await client.metadata();
  if (name !== definition.name) {
    await client.close();
    throw new InputError(`expected a server of ${definition.name} at ${url.href}, got one of ${name}`);
  }
  return {
    reset: (options) => client.reset(options),
    step: (action) => client.step(action),
    grade: async () => (definition.grade === undefined ? null : ((await client.grade()) as Grade)),
    close: () => client.close(),
  };
}
