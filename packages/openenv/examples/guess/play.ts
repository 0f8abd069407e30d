import { connect } from '@servegym/openenv/client';
import type { guess } from './environment.ts';

const env = await connect<typeof guess>(process.argv[2] ?? 'http://localhost:8000');
let [low, high] = [1, 100];
let result = await env.reset({ seed: 41 });
while (!result.done) {
  const number = Math.floor((low + high) / 2);
  result = await env.step({ number });
  console.log(number, result.observation.hint);
  if (result.observation.hint === 'higher') low = number + 1;
  else high = number - 1;
}
await env.close();
