/** A worker of this module's folder. A page of another origin may only start one of its own, which then imports it. */
export function startWorker(name: 'worker' | 'gym-worker'): Worker {
  // The build leaves a name that it does not know as it is.
  const path = `./${name}.js`;
  const address = new URL(path, import.meta.url);
  if (address.origin === location.origin) return new Worker(address, { type: 'module' });
  const own = new Blob([`import ${JSON.stringify(address.href)};`], { type: 'text/javascript' });
  return new Worker(URL.createObjectURL(own), { type: 'module' });
}
