import type { Environment, EnvironmentDefinition } from '../definition.ts';
import { OpenEnvError } from '../error-catalogue.ts';

/** A fresh instance of an environment. @throws OpenEnvError `FACTORY_ERROR` */
export function createInstance<Action, Observation, State>(
  definition: EnvironmentDefinition<Action, Observation, State>,
): Environment<Action, Observation, State> {
  try {
    return definition.create();
  } catch (error) {
    throw new OpenEnvError('FACTORY_ERROR', { factory_name: definition.id }, { cause: error });
  }
}
