import type { Client } from '../api/client.ts';
import { ApiError } from '../api/transport.ts';
import type { Episodes } from './episodes.ts';
import type { PageSignals } from './page-signals.ts';
import type { Player } from './player.ts';

/** Waits so long, or until woken. */
export type Sleep = (milliseconds: number, woken: Promise<void>) => Promise<void>;

const FIRST_RETRY_MS = 400;
const LONGEST_RETRY_MS = 8000;

/** Pause before the attempt with this index, from 0: doubling, up to eight seconds. */
export function retryDelayMs(attempt: number): number {
  return Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** attempt);
}

export const sleepUntilWoken: Sleep = (milliseconds, woken) =>
  Promise.race([woken, new Promise<void>((resolve) => setTimeout(resolve, milliseconds))]);

/** Handles errors while playing: a connection that broke is mended by waiting, other errors are shown. */
export function createReconnection(
  client: Client,
  { runs, abilities, epoch, newest, playing, problem }: PageSignals,
  sleep: Sleep,
  { report }: Problems,
  { play, step, score }: Player,
  { begin }: Episodes,
): (error: unknown, isCurrent: () => boolean) => void {
  /** Window of the last broken connection, and the failures there: a server that is busy is asked ever less often. */
  let place = '';
  let failures = 0;

  const giveUp = (error: ApiError, thenPlay: boolean) =>
    report(error, 'Start the episode again', () => void begin(thenPlay));

  /** Tries until the server is there again, then goes on where the page was. */
  async function reconnect(cause: ApiError, isCurrent: () => boolean, thenPlay: boolean): Promise<void> {
    let error = cause;
    const here = `${epoch.value} ${newest.value}`;
    if (here !== place) failures = 0;
    place = here;
    while (isCurrent()) {
      const isWoken = new Promise<void>((wake) => {
        problem.value = {
          message: `${error.message} The page tries again by itself.`,
          remedy: 'Try now',
          mend: wake,
        };
      });
      // A session that the server has forgotten is rebuilt at once; there is nothing to wait for.
      const delay = Math.max(retryDelayMs(failures++), error.retryAfterMs);
      if (error.isTemporary) await sleep(delay, isWoken);
      if (!isCurrent()) return;
      try {
        await client.health();
        for (const one of runs.value) await one.recover();
        if (!isCurrent()) return;
        problem.value = undefined;
        await score();
        if (thenPlay) play();
        return;
      } catch (failure) {
        if (!(failure instanceof ApiError)) throw failure;
        if (!failure.isTemporary) {
          giveUp(failure, thenPlay);
          return;
        }
        error = failure;
      }
    }
  }

  return (error, isCurrent) => {
    const wasPlaying = playing.value;
    playing.value = false;
    if (!(error instanceof ApiError)) throw error;
    const isForgotten = error.isMissing && abilities.value.episodes;
    if (error.isTemporary || isForgotten) void reconnect(error, isCurrent, wasPlaying);
    else if (error.isTooMuchWork) report(error, 'Try again', () => (wasPlaying ? play() : void step()));
    else giveUp(error, wasPlaying);
  };
}

export type Problems = ReturnType<typeof createProblems>;

/** Tells the person what went wrong, with the way on. */
export function createProblems(client: Client, { problem, needsToken }: PageSignals) {
  let afterToken: () => void = () => {};

  function show(message: string, remedy: string, action: () => void): void {
    problem.value = {
      message,
      remedy,
      mend() {
        problem.value = undefined;
        action();
      },
    };
  }

  return {
    /** Shows what the server refused, or asks for the token that it wants first. Rethrows errors of the page itself. */
    report(error: unknown, remedy: string, action: () => void): void {
      if (!(error instanceof ApiError)) throw error;
      if (error.isUnauthorized) {
        afterToken = action;
        needsToken.value = true;
      } else show(error.message, remedy, action);
    },
    /** Shows a problem that the page itself has, until the person has read it. */
    showProblem: (message: string) => show(message, 'Close', () => {}),
    /** Sends the token from now on and goes on where the server asked for it. */
    enterToken(token: string): void {
      client.authorize(token);
      needsToken.value = false;
      afterToken();
    },
  };
}
