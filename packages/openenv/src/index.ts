export type { Criterion } from './conformance/check.ts';
export { type ForeignSchema, sampleValue } from './conformance/sample-value.ts';
export { type SelfTestOptions, type SelfTestReport, selfTest } from './conformance/self-test.ts';
export {
  type AnswerFields,
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
  type TaskDescription,
  type TaskSplit,
  type ToolDefinition,
  type ToolSession,
} from './definition.ts';
export { mountEpisodeRoutes } from './episodes/episode-routes.ts';
export { isHostPattern, isLoopback } from './guard/allowed-hosts.ts';
export { MAX_PROXIES } from './guard/forwarded.ts';
export { Guard, type GuardedRequest, type GuardOptions, type Refusal } from './guard/guard.ts';
export { DEFAULT_RATE_LIMIT, RateLimiter, type RateLimitOptions } from './guard/rate-limiter.ts';
export { publishedSchemas, toJsonSchema } from './input/json-schemas.ts';
export { mountLeaderboardRoutes } from './leaderboard/leaderboard-routes.ts';
export type { Logger } from './operations/logger.ts';
export type { MetricsFactory, ServerMetrics } from './operations/server-metrics.ts';
export { seasonEnvironment } from './season/season-environment.ts';
export { SeasonLedger } from './season/season-ledger.ts';
export {
  closeSeason,
  graderScoring,
  type SeasonAnchors,
  type SeasonResults,
  type SeasonScoring,
  seasonResults,
  verifySeason,
} from './season/season-results.ts';
export { mountSeasonRoutes } from './season/season-routes.ts';
export { LEAST_EPISODES, type TaskId } from './season/season-rules.ts';
export { createServer, type OpenEnvServer } from './server/create-server.ts';
export { HttpProblem } from './server/http-problem.ts';
export {
  type DrainOptions,
  drainOnSignal,
  type ListeningServer,
  type ListenOptions,
} from './server/listen.ts';
export {
  type AddRoute,
  jsonValue,
  type RouteDescription,
  type RouteHandler,
  type RouteInput,
} from './server/route-table.ts';
export type { ServerOptions } from './server/server-options.ts';
export type { Session } from './sessions/session.ts';
export type { SessionRegistry } from './sessions/session-registry.ts';
export type {
  SessionJournal,
  SessionStore,
  StoreCondition,
  StoredSession,
} from './sessions/session-store.ts';
export { openSqliteStore, type SqliteSessionStoreOptions } from './sessions/sqlite-session-store.ts';
export { Turn } from './sessions/turns.ts';
