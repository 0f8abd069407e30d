import { hostname } from 'node:os';
import { benchmarkEnvironment, llmserve } from '@servegym/environments';
import { createServer, type ListeningServer, type OpenEnvServer } from '@servegym/openenv';
import { InputError } from '../input-error.ts';
import { mountConsole, mountDocsAsPage } from './console-files.ts';
import { mountPolicyRoutes } from './policy-routes.ts';

/** The environments that can be served. */
export const ENVIRONMENT_IDS = ['llmserve', 'benchmark'] as const;
export type EnvironmentId = (typeof ENVIRONMENT_IDS)[number];

export interface StartOptions {
  readonly environment: EnvironmentId;
  /** 0 takes any free port. */
  readonly port: number;
  readonly host: string;
  /** Most sessions at once. Default: that of `createServer`. */
  readonly maxSessions?: number | undefined;
}

/**
 * Serves an environment over OpenEnv: `llmserve` with its policies and the console.
 * @throws InputError when the address is taken, forbidden or not of this machine.
 */
export async function startServer({
  environment,
  port,
  host,
  maxSessions,
}: StartOptions): Promise<ListeningServer> {
  let url = '';
  const server = makeServer(environment, { maxSessions, hostUrl: () => url });
  try {
    const listening = await server.listen({ port, host });
    url = isEverywhere(host) ? `http://${hostname()}:${listening.port}` : listening.url;
    return listening;
  } catch (error) {
    await server.close();
    throw listenError(error as NodeJS.ErrnoException, port, host);
  }
}

function makeServer(
  environment: EnvironmentId,
  { maxSessions, hostUrl }: { readonly maxSessions: number | undefined; readonly hostUrl: () => string },
): Pick<OpenEnvServer, 'listen' | 'close'> {
  switch (environment) {
    case 'llmserve': {
      const server = createServer(llmserve, { maxSessions });
      mountPolicyRoutes(server);
      mountConsole(server.app);
      return server;
    }
    case 'benchmark': {
      const server = createServer(benchmarkEnvironment({ hostUrl }), { maxSessions });
      mountDocsAsPage(server.app);
      return server;
    }
  }
}

/** Such a server is told from others by the machine's name. */
function isEverywhere(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
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
