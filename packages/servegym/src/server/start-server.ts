import { llmserve } from '@servegym/environments';
import { createServer, type ListeningServer } from '@servegym/openenv';
import { InputError } from '../input-error.ts';
import { mountConsole } from './console-files.ts';
import { mountPolicyRoutes } from './policy-routes.ts';

export interface StartOptions {
  /** 0 takes any free port. */
  readonly port: number;
  readonly host: string;
}

/**
 * Serves the `llmserve` environment over OpenEnv, with its policies and the console.
 * @throws InputError when the address is taken, forbidden or not of this machine.
 */
export async function startServer({ port, host }: StartOptions): Promise<ListeningServer> {
  const server = createServer(llmserve);
  mountPolicyRoutes(server);
  mountConsole(server.app);
  try {
    return await server.listen({ port, host });
  } catch (error) {
    await server.close();
    throw listenError(error as NodeJS.ErrnoException, port, host);
  }
}

function listenError(error: NodeJS.ErrnoException, port: number, host: string): Error {
  switch (error.code) {
    case 'EADDRINUSE':
      return new InputError(
        `Port ${port} is taken by another program. Stop it, or choose another port with --port or PORT, for instance --port ${port === 65535 ? 7860 : port + 1}.`,
      );
    case 'EACCES':
      return new InputError(`Port ${port} needs privileges. Choose one above 1023 with --port or PORT.`);
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new InputError(
        `\`${host}\` is no address of this machine. Choose one with --host or HOST; 0.0.0.0 is all of them.`,
      );
    default:
      return error;
  }
}
