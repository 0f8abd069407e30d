import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const server = process.env.SERVEGYM_URL ?? 'http://127.0.0.1:7860';

/** The page stands at `<server>/web/` and asks everything relative to itself, so the build has no absolute URL. */
export default defineConfig(({ command }) => ({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: command === 'serve' ? '/web/' : './',
  logLevel: command === 'serve' ? 'info' : 'warn',
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { '^/(?!web/)': server } },
}));
