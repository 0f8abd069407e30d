import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serveStatic } from '@hono/node-server/serve-static';
import type { Hono } from 'hono';
import { compress } from 'hono/compress';
import { etag } from 'hono/etag';

const built = dirname(fileURLToPath(import.meta.resolve('@servegym/console/dist/index.html')));

/** Paths of the page, which needs no token: it asks the person for one. */
export const CONSOLE_PATHS = ['/', '/web', '/demo'] as const;
/** Paths of the page for plans, which needs no token either. */
export const PLAN_PATHS = ['/plan'] as const;

/** Content security policy of the console: everything is its own, and no script stands in the page itself. */
const CONSOLE_POLICY =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; form-action 'self'";

/** True once the console has been built. */
export function consoleIsBuilt(folder = built): boolean {
  return existsSync(join(folder, 'index.html'));
}

/**
 * Serves the console's build under `/web/`, where `/`, `/web` and `/demo` lead. The page for plans stands under `/plan/` of
 * the environment at the root; `/plan` of the others leads there. Redirects are relative, so that they hold behind a proxy
 * that adds a prefix to the path.
 */
export function mountConsole(app: Hono, isAtRoot: boolean, folder = built): void {
  for (const path of CONSOLE_PATHS) app.get(path, (context) => context.redirect('web/', 307));

  mountPage(app, '/web', 'index.html', folder);
  app.get('/plan', (context) => context.redirect(isAtRoot ? 'plan/' : '../plan/', 307));
  if (isAtRoot) mountPage(app, '/plan', 'plan.html', folder);
}

/** Serves a page of the build, with the files that it asks for, under a path. */
function mountPage(app: Hono, path: string, page: string, folder: string): void {
  app.use(`${path}/*`, compress(), etag());
  app.get(
    `${path}/*`,
    serveStatic({
      root: folder,
      rewriteRequestPath: (asked) => {
        const file = asked.slice(path.length);
        return file === '/' ? `/${page}` : file;
      },
      onFound: (found, context) => {
        // Vite puts a hash of the content into the names of assets; the page itself keeps its name.
        const isHashed = /[\\/]assets[\\/]/.test(found);
        context.header('content-security-policy', CONSOLE_POLICY);
        context.header('cache-control', isHashed ? 'public, max-age=31536000, immutable' : 'no-cache');
      },
    }),
  );
  app.get(`${path}/`, (context) =>
    context.text('The console is not built. Build it with `npm run build -w packages/console`.\n', 503),
  );
}

/** Leads to `/docs` from where the console would be, for a server that has none. */
export function mountDocsAsPage(app: Hono): void {
  for (const path of CONSOLE_PATHS) app.get(path, (context) => context.redirect('docs', 307));
  app.get('/web/', (context) => context.redirect('../docs', 307));
}
