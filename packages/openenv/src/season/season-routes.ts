import { z } from 'zod';
import type { OpenEnvServer } from '../server/create-server.ts';
import type { SeasonLedger } from './season-ledger.ts';
import { seasonRules } from './season-rules.ts';

const progressRequest = z
  .strictObject({ submission: z.string().max(200).meta({ description: 'Token of the submission' }) })
  .meta({ title: 'SeasonProgressRequest' });
const count = z.int().min(0);

/** `GET /season`: the rules and the commitment to the seeds. `POST /season/progress`: how far a submission is. */
export function mountSeasonRoutes<Action, Observation extends object, State extends object>(
  server: OpenEnvServer<Action, Observation, State>,
  ledger: SeasonLedger,
): void {
  server.addRoute(
    {
      method: 'get',
      path: '/season',
      operationId: 'get_season',
      tag: 'Season',
      summary: 'The rules of the season, and the commitment to its seeds',
      description: 'Write the commitment down: `servegym season verify` compares the results with it.',
      answer: seasonRules.extend({ submissions: count, closed: z.boolean() }),
    },
    () => ({ ...ledger.rules, submissions: ledger.submissions.length, closed: ledger.isClosed }),
  );
  server.addRoute(
    {
      method: 'post',
      path: '/season/progress',
      operationId: 'season_progress_post',
      tag: 'Season',
      summary: 'Episodes that a submission has opened and finished',
      body: progressRequest,
      answer: z.object({
        tasks: z.array(
          z.object({
            task_id: z.union([z.string(), z.number()]),
            ...{ opened: count, finished: count, episodes: count },
          }),
        ),
      }),
      errors: { 400: 'Unknown submission (`UNKNOWN_SUBMISSION`)', 422: 'Invalid body' },
    },
    (_, { body: { submission } }) => ({ tasks: ledger.progressOf(submission) }),
  );
}
