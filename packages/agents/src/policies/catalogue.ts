import { EnvironmentError } from '@servegym/openenv/definition';
import { RandomStream } from '@servegym/simulator';
import type { Policy, PolicyEpisode, PolicyStep } from '../core/policy.ts';

/** A policy as lists show it. */
export interface PolicyDescription {
  readonly name: string;
  readonly title: string;
  readonly description: string;
}

/** A policy of a catalogue, and how a fresh one is made. */
export interface PolicyEntry<Action, Observation> extends PolicyDescription {
  /** Takes the number behind the name, `30` of `hpa:30`; `undefined` where none is given. */
  create(value?: number): Policy<Action, Observation>;
}

/** The policies that are described and can be made. */
export function catalogue<Action, Observation>(
  descriptions: readonly PolicyDescription[],
  create: Readonly<Record<string, (value?: number) => Policy<Action, Observation>>>,
): PolicyEntry<Action, Observation>[] {
  return descriptions.map((described) => ({ ...described, create: create[described.name]! }));
}

/**
 * A fresh policy by its name, with a number behind it where `numbered`: `hpa`, `hpa:30`.
 * @throws EnvironmentError `UNKNOWN_POLICY`
 */
export function createFrom<Action, Observation>(
  entries: readonly PolicyEntry<Action, Observation>[],
  spec: string,
  numbered = false,
): Policy<Action, Observation> {
  const [name, value, ...rest] = numbered ? spec.split(':') : [spec];
  const number = value === undefined ? undefined : Number(value);
  const isNumber = number === undefined || (number > 0 && Number.isFinite(number));
  const entry = entries.find((known) => known.name === name);
  if (entry !== undefined && rest.length === 0 && isNumber) return entry.create(number);
  const names = entries.map((known) => (numbered ? `${known.name}[:number]` : known.name));
  throw unknownPolicy(names, spec);
}

export function unknownPolicy(known: readonly string[], got: string): EnvironmentError {
  return new EnvironmentError(
    'UNKNOWN_POLICY',
    `Expected a policy named one of ${known.join(', ')}, got ${JSON.stringify(got)}`,
  );
}

/** A policy that is made anew for each episode. @param start called at each reset: answers what acts in the episode */
export function episodePolicy<Action, Observation>(
  name: string,
  start: (episode: PolicyEpisode) => (step: PolicyStep<Action, Observation>) => Action,
): Policy<Action, Observation> {
  let act: ReturnType<typeof start> | undefined;
  return {
    name,
    reset(episode) {
      act = start(episode);
    },
    act(step) {
      if (act === undefined) throw new TypeError('Expected `reset` before `act`');
      return act(step);
    },
  };
}

/** Keeps one action throughout an episode. */
export function constantPolicy<Action>(
  name: string,
  actionOf: (episode: PolicyEpisode) => Action,
): Policy<Action, object> {
  return episodePolicy(name, (episode) => {
    const action = actionOf(episode);
    return () => action;
  });
}

/** Draws an action anew for every window. */
export function randomPolicy<Action>(
  draw: (random: RandomStream, episode: PolicyEpisode) => Action,
): Policy<Action, object> {
  return episodePolicy('random', (episode) => {
    const random = new RandomStream(episode.seed, 'random policy');
    return () => draw(random, episode);
  });
}
