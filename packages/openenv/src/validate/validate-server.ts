import { baseUrl } from '../client/base-url.ts';
import { checkHttp } from './http-criteria.ts';
import { checkSessions } from './session-criteria.ts';
import { Checklist, type ValidationReport } from './validation-report.ts';

export interface ValidateOptions {
  /** Seed of the episodes that are played. Default 1. */
  readonly seed?: number;
  /** Most steps of an episode that is played. Default 20. */
  readonly steps?: number;
  /** How long an answer may take, ms. Default 10 s. */
  readonly timeoutMs?: number;
}

/**
 * Checks any running OpenEnv server, ours or another: the six criteria of `openenv validate --url`, and then that its
 * sessions can be played, are deterministic and isolated, and that observations and states are as the schemas say.
 * Never throws for what is wrong with the server: that is in the report.
 */
export async function validateServer(
  url: string | URL,
  options: ValidateOptions = {},
): Promise<ValidationReport> {
  const { seed = 1, steps = 20, timeoutMs = 10_000 } = options;
  const base = baseUrl(url);
  const list = new Checklist();
  const { version, mode, schemas } = await checkHttp(list, base, timeoutMs);
  if (schemas) {
    const socketUrl = new URL('ws', base);
    socketUrl.protocol = base.protocol === 'https:' ? 'wss:' : 'ws:';
    await checkSessions(list, socketUrl.href, schemas, { seed, steps, timeoutMs });
  }
  return list.report(String(url), version, mode);
}
