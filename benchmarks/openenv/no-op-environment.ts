import { defineEnvironment } from '@servegym/openenv';
import { z } from 'zod';

/** Does nothing, so that what is measured is the server. `no_op_server.py` has the same on OpenEnv's own server. */
export const noOpEnvironment = defineEnvironment({
  id: 'no-op',
  version: '1',
  name: 'no-op',
  description: 'Does nothing.',
  action: z.strictObject({ choice: z.int().min(0).max(9) }).meta({ title: 'NoOpAction' }),
  observation: z.object({ value: z.number() }).meta({ title: 'NoOpObservation' }),
  state: z.object({}).meta({ title: 'NoOpState' }),
  create: () => ({
    reset: () => ({ observation: { value: 0 }, reward: null, done: false }),
    step: ({ choice }) => ({ observation: { value: choice }, reward: 1, done: false }),
    state: () => ({}),
  }),
});
