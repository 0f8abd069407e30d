import { ApiError } from '../api/api-error.ts';
import type { Client } from '../api/client.ts';
import type { PageSignals } from './page-signals.ts';

/** Tells the person what went wrong, with the way on. */
export interface Problems {
  /** Shows what the server refused, or asks for the token that it wants first. Rethrows errors of the page itself. */
  report(error: unknown, remedy: string, action: () => void): void;
  showProblem(message: string): void;
  enterToken(token: string): void;
}

export function createProblems(client: Client, { problem, needsToken }: PageSignals): Problems {
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
    report(error, remedy, action) {
      if (!(error instanceof ApiError)) throw error;
      if (error.isUnauthorized) {
        afterToken = action;
        needsToken.value = true;
      } else show(error.message, remedy, action);
    },
    showProblem: (message) => show(message, 'Close', () => {}),
    enterToken(token) {
      client.authorize(token);
      needsToken.value = false;
      afterToken();
    },
  };
}
