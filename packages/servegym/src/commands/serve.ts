import { Command, Option } from 'commander';
import { wholeNumber } from '../options.ts';
import { consoleIsBuilt } from '../server/console-files.ts';
import { ENVIRONMENT_IDS, type EnvironmentId, startServer } from '../server/start-server.ts';

interface ServeOptions {
  readonly env: EnvironmentId;
  readonly port: number;
  readonly host: string;
  readonly maxSessions?: number;
}

/** `servegym serve`: an environment over OpenEnv, with its console, until a signal ends it. */
export function serveCommand(): Command {
  return new Command('serve')
    .description('serve an environment over OpenEnv, with the web console')
    .addOption(new Option('--env <id>', 'the environment').choices(ENVIRONMENT_IDS).default('llmserve'))
    .addOption(
      new Option('--port <number>', 'port to listen on; 0 takes any free one')
        .env('PORT')
        .default(7860)
        .argParser(wholeNumber(0, 65535)),
    )
    .addOption(new Option('--host <address>', 'address to listen on').env('HOST').default('0.0.0.0'))
    .addOption(
      new Option('--max-sessions <number>', 'most sessions at once')
        .env('MAX_CONCURRENT_ENVS')
        .argParser(wholeNumber(1, 1_000_000)),
    )
    .action(serve);
}

async function serve({ env, port, host, maxSessions }: ServeOptions): Promise<void> {
  const server = await startServer({ environment: env, port, host, maxSessions });
  console.log(`ServeGym is ready: ${pageUrl(host, server.port)} (Ctrl-C stops it)`);
  if (env === 'llmserve' && !consoleIsBuilt()) {
    console.error('warning: the console is not built; build it with `npm run build -w packages/console`');
  }

  // A terminal sends Ctrl-C to every process of the group and npm forwards it again; once is enough.
  let stopping = false;
  const stop = () => {
    if (stopping) return;
    stopping = true;
    void server.close();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
}

/** Where a browser on this machine finds the page. */
function pageUrl(host: string, port: number): string {
  const isEverywhere = host === '0.0.0.0' || host === '::';
  const name = isEverywhere ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}/web/`;
}
