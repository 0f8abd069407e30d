import { ApiError } from '../api/api-error.ts';
import type { Client } from '../api/client.ts';
import type { PageSignals } from './page-signals.ts';

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
