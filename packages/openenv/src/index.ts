export { mountSeasonRoutes, seasonEnvironment } from './boards/season-environment.ts';
export { LEAST_EPISODES, SeasonLedger } from './boards/season-ledger.ts';
export {
  closeSeason,
  graderScoring,
  type SeasonResults,
  seasonResults,
  verifySeason,
} from './boards/season-results.ts';
export {
  type Caller,
  defineEnvironment,
  defineTool,
  type Environment,
  type EnvironmentDefinition,
  EnvironmentError,
  type EpisodeRecord,
  type Grade,
  type ResetOptions,
  type StepResult,
  type TaskSplit,
  type ToolSession,
} from './protocol/definition.ts';
export { publishedSchemas, toJsonSchema } from './protocol/schemas.ts';

export type { ServerOptions } from './server/create-server.ts';
export { createServer, type OpenEnvServer } from './server/create-server.ts';
export { mountEpisodeRoutes } from './server/episode-routes.ts';
export { DEFAULT_RATE_LIMIT, Guard, RateLimiter } from './server/guard.ts';
export { drainOnSignal, type ListeningServer } from './server/listen.ts';
export { isHostPattern, isLoopback, MAX_PROXIES } from './server/request-origin.ts';
export { describedBy, httpProblem, jsonValue } from './server/route-table.ts';

export type { Session } from './sessions/session.ts';

export type { Logger, SessionStore } from './sessions/session-store.ts';
export { checkSqliteStore, openSqliteStore } from './sessions/sqlite-session-store.ts';
export { Turn } from './sessions/turns.ts';
export { sampleValue } from './validate/sample-value.ts';
