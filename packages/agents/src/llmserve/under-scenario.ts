import type { ServeScenario } from '@servegym/environments';
import type { Policy } from '../core/policy.ts';

/** What there is to change of an environment so that it is played under a scenario. */
interface Played {
  create(): {
    reset(options: { readonly task_id: string | number; readonly seed: number }): unknown;
    step(action: never): unknown;
    close?(): unknown;
  };
  grade?(record: {
    readonly reset: { readonly task_id: string; readonly seed: number };
    readonly actions: readonly never[];
  }): unknown;
}

/** The same environment, whose episodes are all reset with the traffic, trace and shift of `scenario`. */
export function underScenario<E extends Played>(environment: E, scenario: ServeScenario): E {
  const grade = environment.grade?.bind(environment);
  return {
    ...environment,
    create() {
      const instance = environment.create();
      return {
        reset: (options: Parameters<typeof instance.reset>[0]) => instance.reset({ ...scenario, ...options }),
        step: (action: never) => instance.step(action),
        close: () => instance.close?.(),
      };
    },
    ...(grade && {
      grade: (record: Parameters<typeof grade>[0]) =>
        grade({ ...record, reset: { ...scenario, ...record.reset } }),
    }),
  };
}

/** The same policy, told of the scenario: only one that plans on the true traffic makes use of it. */
export function policyUnderScenario<Action, Observation>(
  policy: Policy<Action, Observation>,
  scenario: ServeScenario,
): Policy<Action, Observation> {
  return {
    name: policy.name,
    reset: (episode) => policy.reset({ ...episode, resetOptions: scenario }),
    act: (step) => policy.act(step),
  };
}
