import { type SharedInputs, takeInputs } from '@servegym/agents';
import { findEnvironment } from '@servegym/environments';
import type { JobContext } from '@servegym/jobs';
import { type OpenedEnvironment, openEnvironment } from '../open-environment.ts';

/** An environment of a server, as its jobs know it. */
export interface ServedEnvironment {
  /** `llmserve`, `fleet`, `inferencegym`, or the path of a module that exports an environment. */
  readonly name: string;
  readonly version: string;
  readonly tableFile?: string;
  /** Task and trace that the episode plays, where they are of the server's own. */
  readonly shared?: SharedInputs;
}

const opened = new Map<string, Promise<OpenedEnvironment>>();

/** Opens the environment of a job, on its thread. @throws Error when it is no longer that of the server */
export async function openServed(
  { name, version, tableFile, shared = {} }: ServedEnvironment,
  reset: Readonly<Record<string, unknown>>,
  context: JobContext,
): Promise<OpenedEnvironment> {
  const entry = findEnvironment(name);
  if (entry?.takes.includes('task')) {
    await takeInputs(entry, shared, reset, context);
    return openEnvironment(name);
  }
  const environment = opened.get(name) ?? openEnvironment(name, { tableFile });
  opened.set(name, environment);
  const { definition } = await environment;
  if (definition.version !== version) {
    throw new Error(
      `Expected ${definition.name} ${version}, which this server plays, but its file now has ${definition.version}. Start the server again.`,
    );
  }
  return environment;
}
