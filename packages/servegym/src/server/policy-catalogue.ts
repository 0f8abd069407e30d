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
import {
  chooseFleetTask,
  chooseTask,
  type FleetAction,
  type FleetObservation,
  fleetEnvironment,
  GYM_DEFAULT_ACTION,
  type GymAction,
  type GymObservation,
  inferenceGym,
  type ServeAction,
  type ServeObservation,
  serveEnvironment,
} from '@servegym/environments';
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

/** The policies of `llmserve`. */
export const SERVE_POLICIES: PolicyCatalogue<ServeAction, ServeObservation> = withLlm(
  {
    list: listPolicies,
    create: createPolicy,
    initialAction: (reset) => chooseTask(reset).defaultAction,
  },
  serveEnvironment,
);

/** The policies of `inferencegym`. */
export const GYM_POLICIES: PolicyCatalogue<GymAction, GymObservation> = withLlm(
  {
    list: listGymPolicies,
    create: createGymPolicy,
    initialAction: () => GYM_DEFAULT_ACTION,
  },
  inferenceGym,
);

/** The policies of `fleet`. */
export const FLEET_POLICIES: PolicyCatalogue<FleetAction, FleetObservation> = withLlm(
  {
    list: listFleetPolicies,
    create: createFleetPolicy,
    initialAction: (reset) => chooseFleetTask(reset).defaultAction,
  },
  fleetEnvironment,
);

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
