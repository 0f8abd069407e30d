import { Command, Option } from 'commander';
import { wholeNumber } from '../options.ts';
import { consoleIsBuilt } from '../server/console-files.ts';
import { startServer } from '../server/start-server.ts';

interface ServeOptions {
  readonly env: 'llmserve';
  readonly port: number;
  readonly host: string;
}

/** `servegym serve`: an environment over OpenEnv, with its console, until a signal ends it. */
export function serveCommand(): Command {
  return new Command('serve')
    .description('serve an environment over OpenEnv, with the web console')
    .addOption(new Option('--env <id>', 'the environment').choices(['llmserve']).default('llmserve'))
    .addOption(
      new Option('--port <number>', 'port to listen on; 0 takes any free one')
        .env('PORT')
        .default(7860)
        .argParser(wholeNumber(0, 65535)),
    )
    .addOption(new Option('--host <address>', 'address to listen on').env('HOST').default('0.0.0.0'))
    .action(serve);
}

async function serve({ port, host }: ServeOptions): Promise<void> {
  const server = await startServer({ port, host });
  console.log(`ServeGym is ready: ${pageUrl(host, server.port)} (Ctrl-C stops it)`);
  if (!consoleIsBuilt()) {
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
