import { defineEnvironment } from '@servegym/openenv';
import { z } from 'zod';

export const guess = defineEnvironment({
  id: 'guess',
  version: '1',
  name: 'Guess',
  description: 'Find a number from 1 to 100 in at most ten guesses.',
  action: z.strictObject({ number: z.int().min(1).max(100) }).meta({ title: 'GuessAction' }),
  observation: z
    .object({ hint: z.enum(['start', 'higher', 'lower', 'found']) })
    .meta({ title: 'GuessObservation' }),
  state: z.object({ guesses: z.int() }).meta({ title: 'GuessState' }),
  create() {
    let secret = 0;
    let guesses = 0;
    return {
      reset({ seed = 0 }) {
        secret = 1 + (seed % 100);
        guesses = 0;
        return { observation: { hint: 'start' }, reward: null, done: false };
      },
      step({ number }) {
        guesses++;
        const hint = number < secret ? 'higher' : number > secret ? 'lower' : 'found';
        const done = hint === 'found' || guesses === 10;
        return { observation: { hint }, reward: hint === 'found' ? 1 : -0.05, done };
      },
      state: () => ({ guesses }),
    };
  },
});
