import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { atListPrice, listProfiles } from '@servegym/profiles';
import { defineConfig, type Plugin } from 'vite';
import type { KeptProfile, ProfileEntry } from './src/catalog.ts';

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** A page with nothing but an element, for an `<iframe>`. */
const embedded = (element: string, title: string) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>:root { color-scheme: light dark } body { margin: 0 }</style>
<script type="module" src="./servegym-sim.js"></script>
<${element}></${element}>
</html>
`;

/** The page fetches profiles: its catalog takes the place of the one that holds all of them. */
function forPages(): Plugin {
  return {
    name: 'for-pages',
    enforce: 'pre',
    resolveId(source, importer) {
      if (source.startsWith('node:')) return file('src/node-modules.ts');
      const isOfProfiles = importer?.startsWith(file('../profiles/')) && source.endsWith('/catalog.ts');
      return isOfProfiles ? file('src/catalog.ts') : undefined;
    },
    load(id) {
      // Parts that are fetched later have nothing to load ahead of them.
      if (id.includes('vite/preload-helper')) return 'export const __vitePreload = (load) => load();';
      return undefined;
    },
    transform(code, id) {
      // Shipped policies stand beside the modules.
      return id.endsWith('serve-policies.ts')
        ? code.replace("'../../weights/'", "/* @vite-ignore */ './weights/'")
        : undefined;
    },
    generateBundle() {
      const profiles = listProfiles();
      const entries = profiles.map(
        ({ name, model, gpu, weights, status }): ProfileEntry => ({
          ...{ name, model: model.name, gpu: gpu.name, count: gpu.count, status },
          weights: Object.keys(weights),
        }),
      );
      const emit = (fileName: string, source: string) => this.emitFile({ type: 'asset', fileName, source });
      emit('profiles/index.json', JSON.stringify(entries));
      for (const profile of profiles) {
        const kept: KeptProfile = { profile, listUsdPerHour: atListPrice(profile).gpu.usdPerHour };
        emit(`profiles/${profile.name}.json`, JSON.stringify(kept));
      }
      const weights = file('../agents/weights/');
      for (const name of globSync('ppo-*.safetensors', { cwd: weights }))
        this.emitFile({ type: 'asset', fileName: `weights/${name}`, source: readFileSync(weights + name) });
      emit('embed.html', embedded('servegym-sim', 'Simulated LLM server'));
      emit('embed-gym.html', embedded('servegym-gym', 'A server to run'));
      emit('servegym-sim.d.ts', 'export declare class ServegymSim extends HTMLElement {}\n');
    },
  };
}

export default defineConfig({
  root: file('.'),
  logLevel: 'warn',
  base: './',
  build: {
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    modulePreload: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: {
        'servegym-sim': file('src/servegym-sim.ts'),
        worker: file('src/worker.ts'),
        'gym-worker': file('src/gym-worker.ts'),
      },
      preserveEntrySignatures: 'allow-extension',
      // Of modules that the page has parts of, the others are dropped.
      shimMissingExports: true,
      onLog: (level, log, tell) => log.code !== 'SHIMMED_EXPORT' && tell(level, log),
      // All in one folder: files are found from their modules.
      output: { entryFileNames: '[name].js', chunkFileNames: 'part-[name]-[hash].js' },
    },
  },
  plugins: [forPages()],
});
