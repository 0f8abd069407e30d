import { defineServeTask } from '@servegym/environments';
import officeHours from './office-hours.ts';

/** Office hours at a server whose precision and arrangement of GPUs cannot be changed while it runs. */
export default defineServeTask({
  ...officeHours,
  id: 'fixed_arrangement',
  name: 'Fixed arrangement',
  difficulty: 'easy',
  maskedKnobs: ['quantization_tier', 'prefill_decode_split'],
});
