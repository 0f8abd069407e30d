import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin, type UserConfig } from 'vite';

const server = process.env.SERVEGYM_URL ?? 'http://127.0.0.1:7860';

/** Files fetched when they are first shown. All others are needed at once and come in one piece. */
const LAZY =
  /[\\/](src[\\/](lazy|panels|fleet|plan|report|charts[\\/]xy-chart)|node_modules[\\/]marked)[\\/.]|plan\.html|styles[\\/](drawer|score|run-cards|environment|notes|plan)\.css/;

/** Modules that the page for plans needs as well. */
const SHARED =
  /[\\/](node_modules[\\/](preact|@preact)|src[\\/](charts[\\/]palette|report[\\/]units|components[\\/](format|controls)|api[\\/]transport|state[\\/]kept))[\\/.]|preload-helper/;

/**
 * Parts of uPlot that the page does not use, which no bundler sees, with the number of their places: what its own exports
 * hold, and calendar time, as the time of an episode starts from zero.
 */
const UNUSED_IN_UPLOT: readonly (readonly [part: RegExp, instead: string, places: number])[] = [
  [/\(paths\.bars .*|\(paths\.spline .*|uPlot\.(join|fmtDate|tzDate) += .*/g, '', 5],
  [/const (\[ timeIncrs|_(tzDate|fmtDate|timeAxisSplits|timeAxisVals|timeSeriesVal) ).*/g, '', 7],
  [/let isTime = .*time;/g, 'const isTime = false;', 3],
];

function withoutUnused(): Plugin {
  return {
    name: 'without-unused-parts-of-uplot',
    transform(code, id) {
      if (!/[\\/]uplot[\\/]dist[\\/]uPlot\.esm\.js/.test(id)) return undefined;
      return UNUSED_IN_UPLOT.reduce((rest, [part, instead, places]) => {
        const found = rest.match(part)?.length ?? 0;
        if (found !== places)
          this.error(`Expected ${places} of ${part} in uPlot, found ${found}: look how it does that now`);
        return rest.replace(part, instead);
      }, code);
    },
  };
}

/** Parts that are fetched later bring their styles with them, so that there is nothing to load ahead of them. */
function plainImports(): Plugin {
  return {
    name: 'plain-imports',
    enforce: 'pre',
    load: (id) =>
      id.includes('vite/preload-helper') ? 'export const __vitePreload = (load) => load();' : undefined,
  };
}

/** Puts the code and the style sheet of a page into it, so that it is one file. */
function oneFile(): Plugin {
  return {
    name: 'one-file',
    enforce: 'post',
    generateBundle(_, bundle) {
      const page = Object.values(bundle).find(({ fileName }) => fileName.endsWith('.html'));
      if (page?.type !== 'asset') return this.error('Expected a page');
      let html = String(page.source);
      for (const [name, file] of Object.entries(bundle)) {
        if (file === page) continue;
        const tag = new RegExp(`<(script|link)[^>]*"\\./${name}"[^>]*>(</script>)?`);
        const content =
          file.type === 'chunk'
            ? `<script type="module">${file.code.replaceAll('</script', '<\\/script')}</script>`
            : `<style>${file.source}</style>`;
        // The code goes behind what it reads; the head has only its place.
        html = html.replace(tag, () => (file.type === 'chunk' ? '' : content));
        if (file.type === 'chunk') html = html.replace('</body>', () => `${content}</body>`);
        delete bundle[name];
      }
      page.source = html;
    },
  };
}

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** All that the builds share. */
const common = {
  root: file('.'),
  logLevel: 'warn',
  base: './',
} satisfies UserConfig;
const build = {
  target: 'es2022',
  // The first that know `light-dark()`, by which each colour is written once for both schemes.
  cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
  modulePreload: false,
  reportCompressedSize: false,
} satisfies UserConfig['build'];

/** The console and the page for plans. They stand at `<server>/web/` and ask everything relative to themselves. */
const pages: UserConfig = {
  ...common,
  build: {
    ...build,
    assetsInlineLimit: 0,
    rolldownOptions: {
      input: [file('index.html'), file('plan.html')],
      output: {
        codeSplitting: {
          groups: [
            { name: 'shared', test: SHARED },
            { name: 'page', test: (id) => !LAZY.test(id) && !SHARED.test(id) },
          ],
        },
      },
    },
  },
  plugins: [withoutUnused(), plainImports()],
};

/** The page of a report, as one file. */
const report: UserConfig = {
  ...common,
  build: { ...build, emptyOutDir: false, rolldownOptions: { input: file('report.html') } },
  plugins: [oneFile()],
};

export default defineConfig(({ command, mode }) => {
  if (command === 'serve')
    return { ...pages, base: '/web/', logLevel: 'info', server: { proxy: { '^/(?!web/)': server } } };
  return mode === 'report' ? report : pages;
});
