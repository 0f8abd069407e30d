import { EnvironmentError } from '@servegym/openenv/definition';
import { RandomStream } from '@servegym/simulator';
import type { Policy, PolicyEpisode } from '../core/policy.ts';

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
  return descriptions.flatMap((described) => {
    const make = create[described.name];
    return make === undefined ? [] : [{ ...described, create: make }];
  });
}

/** A fresh policy by its name. @throws EnvironmentError `UNKNOWN_POLICY` */
export function createFrom<Action, Observation>(
  entries: readonly PolicyEntry<Action, Observation>[],
  name: string,
): Policy<Action, Observation> {
  const entry = entries.find((known) => known.name === name);
  if (entry !== undefined) return entry.create();
  throw unknownPolicy(
    entries.map((known) => known.name),
    name,
  );
}

export function unknownPolicy(known: readonly string[], got: string): EnvironmentError {
  return new EnvironmentError(
    'UNKNOWN_POLICY',
    `Expected a policy named one of ${known.join(', ')}, got ${JSON.stringify(got)}`,
  );
}

/** Keeps one action throughout an episode. */
export class ConstantPolicy<Action> implements Policy<Action, object> {
  readonly name: string;
  readonly #actionOf: (episode: PolicyEpisode) => Action;
  #action: Action | undefined;

  /** @param actionOf called at each reset */
  constructor(name: string, actionOf: (episode: PolicyEpisode) => Action) {
    this.name = name;
    this.#actionOf = actionOf;
  }

  reset(episode: PolicyEpisode): void {
    this.#action = this.#actionOf(episode);
  }

  act(): Action {
    if (this.#action === undefined) throw new TypeError('Expected `reset` before `act`');
    return this.#action;
  }
}

/** Draws an action anew for every window. */
export class RandomPolicy<Action> implements Policy<Action, object> {
  readonly name = 'random';
  readonly #draw: (random: RandomStream, episode: PolicyEpisode) => Action;
  #episode: PolicyEpisode | undefined;
  #random = new RandomStream(0, 'random policy');

  constructor(draw: (random: RandomStream, episode: PolicyEpisode) => Action) {
    this.#draw = draw;
  }

  reset(episode: PolicyEpisode): void {
    this.#episode = episode;
    this.#random = new RandomStream(episode.seed, 'random policy');
  }

  act(): Action {
    if (this.#episode === undefined) throw new TypeError('Expected `reset` before `act`');
    return this.#draw(this.#random, this.#episode);
  }
}
