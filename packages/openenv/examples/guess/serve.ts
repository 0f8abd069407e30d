import { createServer, drainOnSignal } from '@servegym/openenv';
import { guess } from './environment.ts';

const listening = await createServer(guess).listen({ port: Number(process.env.PORT ?? 8000) });
drainOnSignal(listening);
console.log(`Guess listens on ${listening.url}`);
