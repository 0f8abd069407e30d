import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';

const server = process.env.SERVEGYM_URL ?? 'http://127.0.0.1:7860';

/** Files fetched when they are first shown. All others are needed at once and come in one piece. */
const LATER =
  /[\\/](src[\\/](later|panels|fleet|plan)|node_modules[\\/]marked)[\\/]|plan\.html|styles[\\/](drawer|tour|score|run-cards|figures|fleet|plan)\.css/;

/** Modules that the page for plans needs as well. */
const SHARED =
  /[\\/](node_modules[\\/](preact|@preact)|src[\\/](charts[\\/]palette|components[\\/](format|brand|icons)|api[\\/]api-error|state[\\/]token))[\\/.]|preload-helper/;

/**
 * Parts of uPlot that the page does not use, which no bundler sees: what its own exports hold, and calendar time, as the
 * time of an episode starts from zero.
 */
const UNUSED_IN_UPLOT: readonly (readonly [code: string, instead: string])[] = [
  ['(paths.bars    = bars);', ''],
  ['(paths.spline  = monotoneCubic);', ''],
  ['uPlot.join = join;', ''],
  ['uPlot.fmtDate = fmtDate;', ''],
  ['uPlot.tzDate  = tzDate;', ''],
  ['const [ timeIncrsMs, _timeAxisStampsMs, timeAxisSplitsMs ] = genTimeStuffs(1);', ''],
  ['const [ timeIncrsS,  _timeAxisStampsS,  timeAxisSplitsS  ] = genTimeStuffs(1e-3);', ''],
  ['const _tzDate  = (opts.tzDate || (ts => new Date(round(ts / ms))));', ''],
  ['const _fmtDate = (opts.fmtDate || fmtDate);', ''],
  ['const _timeAxisSplits = (ms == 1 ? timeAxisSplitsMs(_tzDate) : timeAxisSplitsS(_tzDate));', ''],
  [
    'const _timeAxisVals   = timeAxisVals(_tzDate, timeAxisStamps((ms == 1 ? _timeAxisStampsMs : _timeAxisStampsS), _fmtDate));',
    '',
  ],
  ['const _timeSeriesVal  = timeSeriesVal(_tzDate, timeSeriesStamp(_timeSeriesStamp, _fmtDate));', ''],
  ['let isTime = mode == 1 && scales[s.scale].time;', 'const isTime = false;'],
  ['let isTime = sc.time;', 'const isTime = false;'],
];

function withoutUnused(): Plugin {
  return {
    name: 'without-unused-parts-of-uplot',
    transform(code, id) {
      if (!/[\\/]uplot[\\/]dist[\\/]uPlot\.esm\.js/.test(id)) return undefined;
      return UNUSED_IN_UPLOT.reduce((rest, [part, instead]) => {
        if (!rest.includes(part)) this.error(`uPlot has no \`${part}\` any more: look how it does that now`);
        return rest.replaceAll(part, instead);
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

/** The page stands at `<server>/web/` and asks everything relative to itself, so the build has no absolute URL. */
export default defineConfig(({ command }) => ({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: command === 'serve' ? '/web/' : './',
  logLevel: command === 'serve' ? 'info' : 'warn',
  build: {
    target: 'es2022',
    // The first that know `light-dark()`, by which each colour is written once for both schemes.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: ['index.html', 'plan.html'].map((name) => fileURLToPath(new URL(name, import.meta.url))),
      output: {
        codeSplitting: {
          groups: [
            { name: 'shared', test: SHARED },
            { name: 'page', test: (id) => !LATER.test(id) && !SHARED.test(id) },
          ],
        },
      },
    },
  },
  plugins: [withoutUnused(), plainImports()],
  server: { proxy: { '^/(?!web/)': server } },
}));
