import { describedBy, httpProblem, jsonValue } from '@servegym/openenv';
import ROUTES from './routes.json' with { type: 'json' };

export const described = describedBy(ROUTES);

/** Any JSON object in an answer. */
export const jsonObject = jsonValue<unknown>({ type: 'object' });

/** Answer to a name that is none, with those there are. */
export const unknownName = (what: string, asked: string | number, known: readonly (string | number)[]) =>
  httpProblem(
    404,
    `Unknown ${what}: ${String(asked).slice(0, 100)}. There are ${known.join(', ')}.`,
    `UNKNOWN_${what.toUpperCase()}`,
  );
