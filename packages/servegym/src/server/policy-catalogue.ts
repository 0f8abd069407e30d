import {
  type AsyncPolicy,
  createFleetPolicy,
  createGymPolicy,
  createPolicy,
  isPlanner,
  listFleetPolicies,
  listGymPolicies,
  listPolicies,
  type PolicyDescription,
} from '@servegym/agents';
import type { RegisteredEnvironment } from '@servegym/environments';
import { type EnvironmentDefinition, type ResetOptions, sampleValue, toJsonSchema } from '@servegym/openenv';
import { RandomStream } from '@servegym/simulator';
import { type BackgroundEnvironment, BackgroundPolicy } from './background/background-environment.ts';
import { withLlm } from './llm-player.ts';

/** The policies that can play the sessions of an environment. */
export interface PolicyCatalogue<Action, Observation> {
  list(): readonly PolicyDescription[];
  /** A fresh policy of one of the listed names. */
  create(name: string): AsyncPolicy<Action, Observation>;
  /** The action in force right after a reset. */
  initialAction(reset: ResetOptions): Action;
}

/** Policies of the environments that come with any. */
const CATALOGUES: Readonly<Record<string, object>> = {
  llmserve: { list: listPolicies, create: createPolicy },
  inferencegym: { list: listGymPolicies, create: createGymPolicy },
  fleet: { list: listFleetPolicies, create: createFleetPolicy },
};

/** The policies of an environment; those of its schemas where it comes with none. */
export function policiesOf<Action, Observation extends object>(
  entry: Pick<RegisteredEnvironment<Action, Observation>, 'id' | 'initialAction' | 'definition'>,
  definition: EnvironmentDefinition<Action, Observation, object> = entry.definition(),
): PolicyCatalogue<Action, Observation> {
  if (!Object.hasOwn(CATALOGUES, entry.id)) return schemaPolicies(definition);
  // A policy of an environment meets only this environment's observations.
  const { list, create } = CATALOGUES[entry.id] as unknown as PolicyCatalogue<Action, Observation>;
  const { initialAction } = entry;
  return withLlm({ list, create, initialAction }, () => entry.definition());
}

/** The same policies, of which those that plan do so on worker threads. */
export function inBackground<Action, Observation>(
  catalogue: PolicyCatalogue<Action, Observation>,
  background: BackgroundEnvironment,
): PolicyCatalogue<Action, Observation> {
  return {
    ...catalogue,
    create: (name) => (isPlanner(name) ? new BackgroundPolicy(name, background) : catalogue.create(name)),
  };
}

/** Policies for an environment of which only the schemas are known: actions drawn from its schema. */
export function schemaPolicies<Action>(
  definition: Pick<EnvironmentDefinition<Action>, 'action'>,
): PolicyCatalogue<Action, unknown> {
  const schema = toJsonSchema(definition.action, 'input');
  const random: PolicyDescription = {
    name: 'random',
    title: 'Random',
    description: 'Draws every field of the action from its range, anew for every step.',
  };
  return {
    list: () => [random],
    create() {
      let stream = new RandomStream(0, 'random policy');
      return {
        name: random.name,
        reset({ seed }) {
          stream = new RandomStream(seed, 'random policy');
        },
        act: () => definition.action.parse(sampleValue(schema as never, () => stream.uniform())),
      };
    },
    initialAction: () => definition.action.parse(sampleValue(schema as never)),
  };
}
