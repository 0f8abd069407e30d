/** Calls listeners of the window by the type of their events. Answers how to stop. */
export function listen(
  listeners: Readonly<Record<string, (event: Event) => void>>,
  options: AddEventListenerOptions = {},
): () => void {
  const stop = new AbortController();
  for (const [type, listener] of Object.entries(listeners))
    addEventListener(type, listener, { ...options, signal: stop.signal });
  return () => stop.abort();
}
