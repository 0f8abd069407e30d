// Puts one deliberate fault into a module as it is loaded. `SERVEGYM_FAULT` is JSON: `url` of the module, `search` and
// `replace`. It is loaded by `--import` in NODE_OPTIONS, so that worker threads and child processes have the fault too.
import { registerHooks } from 'node:module';
import { faultySource } from './faulty-source.ts';

const fault = JSON.parse(process.env.SERVEGYM_FAULT);

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (url !== fault.url) return loaded;
    return { ...loaded, source: faultySource(String(loaded.source), fault) };
  },
});
