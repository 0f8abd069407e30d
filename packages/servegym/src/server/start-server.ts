import { hostname } from 'node:os';
import { benchmarkEnvironment, llmserve } from '@servegym/environments';
import {
  createServer,
  type ListeningServer,
  type OpenEnvServer,
  type ServerOptions,
} from '@servegym/openenv';
import { InputError } from '../input-error.ts';
import { mountConsole, mountDocsAsPage } from './console-files.ts';
import { mountPolicyRoutes } from './policy-routes.ts';
import { openSessionFile } from './session-file.ts';

/** The environments that can be served. */
export const ENVIRONMENT_IDS = ['llmserve', 'benchmark'] as const;
export type EnvironmentId = (typeof ENVIRONMENT_IDS)[number];

export interface StartOptions extends Omit<ServerOptions, 'store'> {
  readonly environment: EnvironmentId;
  /** 0 takes any free port. */
  readonly port: number;
  readonly host: string;
  /** Keeps the sessions of a replayable environment beyond the end of the process. Default: they are not kept. */
  readonly sessionFile?: string;
}

export interface RunningServer extends ListeningServer {
  /** Sessions that a socket holds now. */
  readonly heldSessions: number;
  /** Whether sessions outlive the process. */
  readonly keepsSessions: boolean;
  /** Whether `/web/` is the console. */
  readonly hasConsole: boolean;
}

/** What is common to the servers of all environments. */
interface MountedServer extends Pick<OpenEnvServer, 'listen' | 'close'> {
  readonly sessions: Iterable<{ readonly id: string }> & {
    readonly durable: boolean;
    isAttached(id: string): boolean;
  };
}

/**
 * Serves an environment over OpenEnv: `llmserve` with its policies and the console.
 * @throws InputError when the address is taken, forbidden or not of this machine, or the file cannot be used.
 */
export async function startServer(options: StartOptions): Promise<RunningServer> {
  const { environment, port, host, mode } = options;
  let url = '';
  const server = mountServer(options, () => url);
  try {
    const listening = await server.listen({ port, host });
    url = isEverywhere(host) ? `http://${hostname()}:${listening.port}` : listening.url;
    return {
      ...listening,
      keepsSessions: server.sessions.durable,
      hasConsole: environment === 'llmserve' && mode !== 'production',
      get heldSessions() {
        return [...server.sessions].filter(({ id }) => server.sessions.isAttached(id)).length;
      },
    };
  } catch (error) {
    await server.close();
    throw listenError(error as NodeJS.ErrnoException, port, host);
  }
}

function mountServer(
  { environment, sessionFile, ...options }: StartOptions,
  hostUrl: () => string,
): MountedServer {
  switch (environment) {
    case 'llmserve': {
      const store = sessionFile === undefined ? undefined : openSessionFile(sessionFile);
      const server = createServer(llmserve, { ...options, store });
      if (options.mode === 'production') {
        mountDocsAsPage(server.app);
      } else {
        mountPolicyRoutes(server);
        mountConsole(server.app);
      }
      return server;
    }
    case 'benchmark': {
      const server = createServer(benchmarkEnvironment({ hostUrl }), options);
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
