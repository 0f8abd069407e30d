import { type AsyncPolicy, agentsOf, type PolicyDescription } from '@servegym/agents';
import type { EnvironmentId, RegisteredEnvironment } from '@servegym/environments';
import { type EnvironmentDefinition, type ResetOptions, sampleValue, toJsonSchema } from '@servegym/openenv';
import { RandomStream } from '@servegym/simulator';
import { type BackgroundEnvironment, BackgroundPolicy } from './background/background-environment.ts';
import { withLlm } from './llm-player.ts';

/** The policies that can play the sessions of an environment. */
export interface PolicyCatalogue<Action, Observation> {
  list(): readonly PolicyDescription[];
  /** A fresh policy of one of the listed names. */
  create(name: string): AsyncPolicy<Action, Observation>;
  /** Names of those that plan for longer than a caller waits. */
  readonly planners?: readonly string[];
  /** The action in force right after a reset. */
  initialAction(reset: ResetOptions): Action;
}

/** The policies of an environment; those of its schemas where it comes with none. */
export function policiesOf<Action, Observation extends object>(
  entry: Pick<RegisteredEnvironment<Action, Observation>, 'id' | 'initialAction' | 'definition' | 'grade'>,
  definition: EnvironmentDefinition<Action, Observation, object> = entry.definition(),
): PolicyCatalogue<Action, Observation> {
  // Nobody is to get better at what is not graded.
  if (entry.grade === undefined) return schemaPolicies(definition);
  const { policies, planners, createPolicy } = agentsOf(entry.id as EnvironmentId);
  // A policy of an environment meets only this environment's observations.
  const create = createPolicy as unknown as PolicyCatalogue<Action, Observation>['create'];
  const { initialAction } = entry;
  return withLlm({ list: () => policies, create, planners, initialAction }, () => entry.definition());
}

/** The same policies, of which those that plan do so on worker threads. */
export function inBackground<Action, Observation>(
  catalogue: PolicyCatalogue<Action, Observation>,
  background: BackgroundEnvironment,
): PolicyCatalogue<Action, Observation> {
  return {
    ...catalogue,
    create: (name) =>
      catalogue.planners?.includes(name) ? new BackgroundPolicy(name, background) : catalogue.create(name),
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
