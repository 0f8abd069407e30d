import { addSharedFleetTask, addSharedTask, addSharedTrace } from '@servegym/agents';
import { fleetEnvironment, inferenceGym, serveEnvironment } from '@servegym/environments';
import type { JobContext } from '@servegym/jobs';
import type { EnvironmentDefinition } from '@servegym/openenv';
import { readGymOptions } from '../../cli/arguments/read-table.ts';
import { loadEnvironment } from '../load-environment.ts';
import {
  FLEET_POLICIES,
  GYM_POLICIES,
  type PolicyCatalogue,
  SERVE_POLICIES,
  schemaPolicies,
} from '../policy-catalogue.ts';

/** An environment of a server, as its jobs know it. */
export interface ServedEnvironment {
  /** `llmserve`, `fleet`, `inferencegym`, or the path of a module that exports an environment. */
  readonly name: string;
  readonly version: string;
  readonly tableFile?: string;
  /** Shared bytes of the task and the trace that the episode plays, where they are of the server's own. */
  readonly task?: string;
  readonly trace?: string;
}

/** An environment with the policies that play it. */
export interface OpenedEnvironment {
  readonly definition: EnvironmentDefinition<unknown, object, object>;
  readonly policies: PolicyCatalogue<unknown, unknown>;
}

const opened = new Map<string, Promise<OpenedEnvironment>>();

/** Opens the environment of a job, on its thread. @throws Error when it is no longer that of the server */
export async function openServed(
  served: ServedEnvironment,
  reset: Readonly<Record<string, unknown>>,
  context: JobContext,
): Promise<OpenedEnvironment> {
  const { name, version, tableFile, task, trace } = served;
  if (name === 'llmserve') {
    addSharedTask(task, context);
    addSharedTrace(reset, trace, context);
    return { definition: serveEnvironment(), policies: SERVE_POLICIES } as unknown as OpenedEnvironment;
  }
  if (name === 'fleet') {
    addSharedFleetTask(task, context);
    addSharedTrace(reset, trace, context);
    return { definition: fleetEnvironment(), policies: FLEET_POLICIES } as unknown as OpenedEnvironment;
  }
  const environment = opened.get(name) ?? open(name, tableFile);
  opened.set(name, environment);
  const { definition } = await environment;
  if (definition.version !== version) {
    throw new Error(
      `Expected ${definition.name} ${version}, which this server plays, but its file now has ${definition.version}. Start the server again.`,
    );
  }
  return environment;
}

async function open(name: string, tableFile: string | undefined): Promise<OpenedEnvironment> {
  if (name === 'inferencegym') {
    const definition = inferenceGym(await readGymOptions(tableFile));
    return { definition, policies: GYM_POLICIES } as unknown as OpenedEnvironment;
  }
  const definition = await loadEnvironment(name, []);
  return { definition, policies: schemaPolicies(definition) };
}
